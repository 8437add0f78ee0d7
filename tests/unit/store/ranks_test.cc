// SPDX-License-Identifier: Apache-2.0
#include "store/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class StoreRanksTest : public testing::Test {
 protected:
  StoreAnswer take(SessionId from, int rank = -1, std::uint32_t size = 0,
                   std::string scope = "job") {
    return answer_or_refuse(5, ranks_.take(from, "session " + std::to_string(from),
                                           {.id = 5,
                                            .operation = StoreOperation::kTakeRank,
                                            .key = std::move(scope),
                                            .rank = rank,
                                            .size = size}));
  }
  // For takings that succeed.
  std::int64_t taken(SessionId from, int rank = -1, std::uint32_t size = 0) {
    const StoreAnswer answer = take(from, rank, size);
    EXPECT_EQ(answer.id, 5U);
    EXPECT_EQ(answer.code, Code::kOk) << answer.message;
    return answer.number;
  }

  StoreCharges charges_{StoreQuota{}.memory_share()};
  StoreRanks ranks_{charges_, {{"of three", 3}}};
};

TEST_F(StoreRanksTest, AHostsWordOnTheSizeHoldsWhoeverComesFirst) {
  const StoreAnswer wrong = take(1, 0, 5, "of three");
  EXPECT_EQ(wrong.code, Code::kInvalidArgument);
  EXPECT_THAT(wrong.message, AllOf(HasSubstr("5"), HasSubstr("3")));
  const StoreAnswer right = take(2, 2, 3, "of three");
  EXPECT_EQ(right.code, Code::kOk) << right.message;
  EXPECT_EQ(right.number, 2);
}

TEST_F(StoreRanksTest, NumbersByArrivalWithoutAGap) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(taken(static_cast<SessionId>(10 + i)), i);
}

TEST_F(StoreRanksTest, GivesTheLowestThatBecameFree) {
  for (SessionId id : {1, 2, 3, 4}) taken(id);
  ranks_.disconnect(3);
  ranks_.disconnect(2);
  EXPECT_EQ(taken(5), 1);
  EXPECT_EQ(taken(6), 2);
  EXPECT_EQ(taken(7), 4);
}

TEST_F(StoreRanksTest, GivesTheRankThatIsWanted) {
  EXPECT_EQ(taken(1, 1), 1);
  EXPECT_EQ(taken(2), 0);
  EXPECT_EQ(taken(3), 2);
}

TEST_F(StoreRanksTest, ADuplicateIsRefusedAndNamesWhoHasIt) {
  taken(1, 0);
  const StoreAnswer answer = take(2, 0);
  EXPECT_EQ(answer.code, Code::kUnavailable);
  EXPECT_EQ(answer.message, "rank 0 is taken by session 1 [memspan-explain rank-taken]");
  ranks_.disconnect(2);
  ranks_.disconnect(1);
  EXPECT_EQ(taken(2, 0), 0);
}

TEST_F(StoreRanksTest, TakesTheSizeFromTheFirstWhoKnowsIt) {
  taken(1);
  taken(2, -1, 3);
  taken(3);
  const StoreAnswer full = take(4);
  EXPECT_EQ(full.code, Code::kUnavailable);
  EXPECT_EQ(full.message, "all 3 ranks are taken");
}

TEST_F(StoreRanksTest, AnotherSizeIsRefusedAndNamesBoth) {
  taken(1, -1, 3);
  const StoreAnswer answer = take(2, -1, 4);
  EXPECT_EQ(answer.code, Code::kInvalidArgument);
  EXPECT_THAT(answer.message, AllOf(HasSubstr("there are 4 ranks"), HasSubstr("others said 3")));
}

TEST_F(StoreRanksTest, ARankBeyondTheSizeIsRefusedAndNamesBoth) {
  taken(1, -1, 3);
  const StoreAnswer answer = take(2, 3);
  EXPECT_EQ(answer.code, Code::kInvalidArgument);
  EXPECT_EQ(answer.message, "the rank is 3, allowed are 0 to 2");
  EXPECT_EQ(take(2, -2).code, Code::kInvalidArgument);
  EXPECT_EQ(take(2, static_cast<int>(kMostRanks)).code, Code::kInvalidArgument);
  EXPECT_EQ(take(2, 0, kMostRanks + 1).code, Code::kInvalidArgument);
}

TEST_F(StoreRanksTest, ARefusedTakingTellsNoSize) {
  taken(1, 5);
  EXPECT_EQ(take(2, 7, 7).code, Code::kInvalidArgument);
  EXPECT_EQ(taken(3, -1, 8), 0);
}

TEST_F(StoreRanksTest, ASizeBelowARankThatIsTakenIsRefusedAndNamesBoth) {
  taken(1, 5);
  const StoreAnswer answer = take(2, -1, 5);
  EXPECT_EQ(answer.code, Code::kInvalidArgument);
  EXPECT_THAT(answer.message, AllOf(HasSubstr("5 ranks"), HasSubstr("rank 5")));
  EXPECT_EQ(taken(2, -1, 6), 0);
}

TEST_F(StoreRanksTest, AScopeIsForgottenWhenNobodyIsLeft) {
  taken(1, -1, 1);
  EXPECT_EQ(take(2, -1, 2).code, Code::kInvalidArgument);
  ranks_.disconnect(1);
  EXPECT_EQ(taken(2, -1, 2), 0);
}

TEST_F(StoreRanksTest, ScopesAreIndependent) {
  EXPECT_EQ(take(1, 0, 1, "a").code, Code::kOk);
  EXPECT_EQ(take(1, 0, 2, "b").code, Code::kOk);
  EXPECT_EQ(take(1, 0, 3, "c").code, Code::kOk);
  ranks_.disconnect(1);
  EXPECT_EQ(take(2, 0, 4, "c").code, Code::kOk);
}

TEST_F(StoreRanksTest, ARankThatIsGivenUpIsFree) {
  const auto give = [&](SessionId from, const char* scope) {
    return answer_or_refuse(
        6, ranks_.give(from, {.id = 6, .operation = StoreOperation::kGiveRank, .key = scope}));
  };
  EXPECT_EQ(give(1, "job").code, Code::kNotFound);
  EXPECT_EQ(taken(1, 0, 2), 0);
  EXPECT_EQ(taken(2, 1, 2), 1);
  EXPECT_EQ(give(1, "another").code, Code::kNotFound);
  EXPECT_EQ(give(1, "job"), StoreAnswer{.id = 6});
  EXPECT_EQ(give(1, "job").code, Code::kNotFound);
  EXPECT_EQ(taken(3), 0);
  give(2, "job");
  give(3, "job");
  EXPECT_EQ(taken(1, 6, 7), 6);  // nobody was left, so the size is free, too
}

TEST_F(StoreRanksTest, OneSessionHoldsSoManyAndNoMore) {
  StoreCharges charges{StoreQuota{.session = 5000}.memory_share()};
  StoreRanks ranks(charges);
  StoreAnswer answer;
  int taken = -1;
  for (; answer.code == Code::kOk && taken < 100; ++taken)
    answer = answer_or_refuse(
        5, ranks.take(1, "one", {.id = 5, .operation = StoreOperation::kTakeRank, .key = "k"}));
  EXPECT_EQ(answer.code, Code::kOutOfMemory);
  EXPECT_LT(taken, 10);
  ranks.disconnect(1);
  EXPECT_EQ(charges.all(), 0U);
}

}  // namespace
}  // namespace memspan
