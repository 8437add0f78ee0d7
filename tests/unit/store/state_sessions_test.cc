// SPDX-License-Identifier: Apache-2.0
// How sessions end, by silence or by disconnect, and what goes with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/state.h"

namespace memspan {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr SessionId kAnna = 1;  // may be silent for a second
constexpr SessionId kBen = 2;   // may be silent for ever

class StoreSessionsTest : public testing::Test {
 protected:
  StoreSessionsTest() {
    state_.connect(kAnna, {.name = "Anna", .silence = milliseconds(1000)}, now_);
    state_.connect(kBen, {.name = "Ben"}, now_);
  }
  StoreAnswers apply(SessionId from, StoreRequest request) {
    request.id = ++last_id_;
    return state_.apply(from, std::move(request), now_);
  }
  bool exists(std::string key) {
    const auto answers = apply(kBen, {.operation = StoreOperation::kGetNow, .key = std::move(key)});
    return answers.at(0).answer.code == Code::kOk;
  }
  void give_anna_everything() {
    apply(kAnna,
          {.operation = StoreOperation::kSet, .key = "hers", .value = "v", .is_owned = true});
    apply(kAnna, {.operation = StoreOperation::kTakeRank, .key = "job", .size = 2});
    apply(kAnna, {.operation = StoreOperation::kWatch, .key = ""});
    apply(kAnna, {.operation = StoreOperation::kGet, .key = "w", .timeout_ms = kNoTimeout});
  }
  void expect_that_nothing_of_anna_is_left() {
    EXPECT_FALSE(exists("hers"));
    auto rank = apply(kBen, {.operation = StoreOperation::kTakeRank, .key = "job", .rank = 0});
    EXPECT_EQ(rank.at(0).answer.code, Code::kOk);
    EXPECT_EQ(apply(kBen, {.operation = StoreOperation::kSet, .key = "w"}).size(), 1U);
    EXPECT_FALSE(state_.next_deadline());
  }

  StoreState state_;
  Clock::time_point now_ = {};
  std::uint64_t last_id_ = 0;
};

TEST_F(StoreSessionsTest, EverythingGoesAtADisconnect) {
  give_anna_everything();
  EXPECT_THAT(state_.disconnect(kAnna), IsEmpty());
  expect_that_nothing_of_anna_is_left();
}

TEST_F(StoreSessionsTest, EverythingGoesAfterSilence) {
  give_anna_everything();
  now_ += milliseconds(999);
  EXPECT_THAT(state_.expire(now_).silent, IsEmpty());
  EXPECT_TRUE(exists("hers"));
  now_ += milliseconds(1);
  EXPECT_THAT(state_.expire(now_).silent, ElementsAre(kAnna));
  expect_that_nothing_of_anna_is_left();
}

TEST_F(StoreSessionsTest, TheOthersLearnWhichKeysAreGone) {
  give_anna_everything();
  apply(kBen, {.operation = StoreOperation::kWatch, .key = "h"});
  const std::uint64_t watch = last_id_;
  const auto expired = state_.expire(now_ + milliseconds(1500));
  ASSERT_EQ(expired.answers.size(), 1U);
  EXPECT_EQ(expired.answers[0].to, kBen);
  EXPECT_EQ(expired.answers[0].answer,
            (StoreAnswer{.id = watch, .event = StoreEvent::kRemoved, .key = "hers"}));
}

TEST_F(StoreSessionsTest, WhoIsHeardLives) {
  for (int i = 0; i < 5; ++i) {
    now_ += milliseconds(900);
    EXPECT_THAT(state_.expire(now_).silent, IsEmpty());
    state_.hear(kAnna, now_);
  }
  now_ += milliseconds(900);
  EXPECT_THAT(state_.expire(now_).silent, IsEmpty());
  apply(kAnna, {.operation = StoreOperation::kPing});  // a request is heard as well
  now_ += milliseconds(999);
  EXPECT_THAT(state_.expire(now_).silent, IsEmpty());
  now_ += milliseconds(1);
  EXPECT_THAT(state_.expire(now_).silent, ElementsAre(kAnna));
}

TEST_F(StoreSessionsTest, TheAlarmIsNeverLaterThanTheSilence) {
  EXPECT_EQ(state_.next_deadline(), now_ + milliseconds(1000));
  state_.hear(kAnna, now_ + milliseconds(600));
  ASSERT_TRUE(state_.next_deadline());
  EXPECT_LE(*state_.next_deadline(), now_ + milliseconds(1600));
  EXPECT_THAT(state_.expire(now_ + milliseconds(1000)).silent, IsEmpty());
  EXPECT_EQ(state_.next_deadline(), now_ + milliseconds(1600));
  EXPECT_THAT(state_.expire(now_ + milliseconds(1600)).silent, ElementsAre(kAnna));
  EXPECT_FALSE(state_.next_deadline());
}

TEST_F(StoreSessionsTest, WhoAgreedToNothingMayBeSilentForEver) {
  state_.disconnect(kAnna);
  EXPECT_FALSE(state_.next_deadline());
  EXPECT_THAT(state_.expire(now_ + std::chrono::hours(10000)).silent, IsEmpty());
  EXPECT_FALSE(exists("k"));
}

TEST_F(StoreSessionsTest, ASessionEndsOnce) {
  apply(kBen, {.operation = StoreOperation::kWatch, .key = ""});
  apply(kAnna, {.operation = StoreOperation::kSet, .key = "k", .is_owned = true});
  EXPECT_EQ(state_.disconnect(kAnna).size(), 1U);
  EXPECT_THAT(state_.disconnect(kAnna), IsEmpty());
  state_.hear(kAnna, now_);
  EXPECT_FALSE(state_.next_deadline());
}

TEST_F(StoreSessionsTest, SeveralSessionsFallSilentAtOnce) {
  state_.connect(7, {.name = "Cleo", .silence = milliseconds(400)}, now_);
  apply(kAnna, {.operation = StoreOperation::kWatch, .key = ""});
  apply(7, {.operation = StoreOperation::kSet, .key = "k", .is_owned = true});
  // Cleo's time was over first, so Anna is still told; then she goes too.
  const auto expired = state_.expire(now_ + milliseconds(1000));
  EXPECT_THAT(expired.silent, ElementsAre(7, kAnna));
  ASSERT_EQ(expired.answers.size(), 1U);
  EXPECT_EQ(expired.answers[0].to, kAnna);
}

TEST_F(StoreSessionsTest, TheNextDeadlineIsTheEarliestOfAll) {
  apply(kBen, {.operation = StoreOperation::kGet, .key = "k", .timeout_ms = 500});
  apply(kBen, {.operation = StoreOperation::kGet, .key = "l", .timeout_ms = 300});
  EXPECT_EQ(state_.next_deadline(), now_ + milliseconds(300));
  EXPECT_EQ(state_.expire(now_ + milliseconds(300)).answers.size(), 1U);
  EXPECT_EQ(state_.next_deadline(), now_ + milliseconds(500));
  EXPECT_EQ(state_.expire(now_ + milliseconds(500)).answers.size(), 1U);
  EXPECT_EQ(state_.next_deadline(), now_ + milliseconds(1000));
}

TEST_F(StoreSessionsTest, APingIsAnsweredAndNothingElse) {
  const auto answers = apply(kBen, {.operation = StoreOperation::kPing});
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].answer, StoreAnswer{.id = last_id_});
}

}  // namespace
}  // namespace memspan
