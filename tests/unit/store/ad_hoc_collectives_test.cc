// SPDX-License-Identifier: Apache-2.0
#include "store/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace memspan {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr SessionId kAnna = 1, kBen = 2, kCleo = 3, kDan = 4;

// A clock that only moves when a test says so. Requests are numbered as they come.
class AdHocCollectivesTest : public testing::Test {
 protected:
  StoreAnswers come(SessionId who, int rank, std::uint32_t size = 2, std::string mine = {},
                    StoreOperation kind = StoreOperation::kAllgather) {
    StoreAnswers answers;
    collectives_.contribute(who, "PE " + std::to_string(who),
                            {.id = ++requests_,
                             .operation = kind,
                             .keys = {name_},
                             .value = std::move(mine),
                             .timeout_ms = 1000,
                             .rank = rank,
                             .size = size},
                            now_, answers);
    return answers;
  }
  StoreAnswers create(SessionId who, int rank, std::uint32_t size = 2, std::string mine = {}) {
    return come(who, rank, size, std::move(mine), StoreOperation::kCreateGroup);
  }
  StoreAnswers disconnect(SessionId who) {
    StoreAnswers answers;
    collectives_.disconnect(who, "it went", answers);
    return answers;
  }
  StoreAnswers leave(SessionId who, StoreAnswer& own) {
    StoreAnswers answers;
    own = collectives_.leave(
        who, {.id = 7, .operation = StoreOperation::kLeaveGroup, .keys = {name_}}, answers);
    return answers;
  }
  StoreAnswers expire(Duration after) {
    now_ += after;
    StoreAnswers answers;
    collectives_.expire(now_, answers);
    return answers;
  }
  // These sessions are told that the round is complete, with these parts.
  static void expect_parts(const StoreAnswers& answers, const std::vector<SessionId>& sessions,
                           const std::vector<std::string>& parts) {
    ASSERT_EQ(answers.size(), sessions.size());
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      EXPECT_EQ(answers[i].to, sessions[i]);
      ASSERT_EQ(answers[i].answer.code, Code::kOk) << answers[i].answer.message;
      EXPECT_EQ(*unpack_texts(answers[i].answer.value), parts);
    }
  }
  // The name of the group that Anna and Ben are told about.
  static std::string created(const StoreAnswers& answers, std::vector<std::string> parts) {
    EXPECT_EQ(answers.size(), 2U);
    const std::string name = answers.empty() ? "" : unpack_texts(answers[0].answer.value)->back();
    parts.push_back(name);
    expect_parts(answers, {kAnna, kBen}, parts);
    return name;
  }
  // All of them are told the same failure.
  static void expect_failure(const StoreAnswers& answers, const std::vector<SessionId>& sessions,
                             Code code, const std::string& words) {
    ASSERT_EQ(answers.size(), sessions.size());
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      EXPECT_EQ(answers[i].to, sessions[i]);
      EXPECT_EQ(answers[i].answer.code, code);
      EXPECT_THAT(answers[i].answer.message, HasSubstr(words));
    }
  }

  StoreCharges charges_{StoreQuota{}.memory_share()};
  StoreCollectives collectives_{{.keys = 2000, .bytes = 64}, charges_};
  std::string name_ = "k";
  std::uint64_t requests_ = 0;
  Clock::time_point now_ = {};
};

TEST_F(AdHocCollectivesTest, TheLastToComeAnswersAllByRank) {
  EXPECT_THAT(come(kBen, 1, 3, "b"), IsEmpty());
  EXPECT_THAT(come(kCleo, 2, 3), IsEmpty());
  expect_parts(come(kAnna, 0, 3, "a"), {kAnna, kBen, kCleo}, {"a", "b", ""});
  EXPECT_FALSE(collectives_.next_deadline());
}

TEST_F(AdHocCollectivesTest, OneAloneMeetsAtOnce) {
  expect_parts(come(kAnna, 0, 1, "a"), {kAnna}, {"a"});
  expect_parts(come(kBen, 0, 1, "b"), {kBen}, {"b"});
}

TEST_F(AdHocCollectivesTest, ANameMayBeUsedAgainByOthersInAnyRank) {
  come(kAnna, 0);
  come(kBen, 1);
  come(kCleo, 0, 2, "c");
  expect_parts(come(kDan, 1, 2, "d"), {kCleo, kDan}, {"c", "d"});
  come(kDan, 0, 2, "d");
  expect_parts(come(kAnna, 1, 2, "a"), {kDan, kAnna}, {"d", "a"});
  // One of them as before, the other one new, whoever is first.
  come(kDan, 0, 2, "d2");
  expect_parts(come(kBen, 1, 2, "b"), {kDan, kBen}, {"d2", "b"});
  come(kCleo, 1, 2, "c");
  expect_parts(come(kDan, 0, 2, "d3"), {kDan, kCleo}, {"d3", "c"});
  // Another number of them.
  come(kCleo, 1, 3);
  come(kAnna, 2, 3);
  EXPECT_EQ(come(kDan, 0, 3).size(), 3U);
}

TEST_F(AdHocCollectivesTest, StaysInStepAfterATimeOut) {
  come(kAnna, 0, 2, "a1");
  expect_failure(expire(milliseconds(1000)), {kAnna}, Code::kTimeout,
                 "1 of 2 members did not come: rank 1");
  come(kAnna, 0, 2, "a2");
  // The late one meets the part that was left, which nobody waits for.
  expect_parts(come(kBen, 1, 2, "b1"), {kBen}, {"a1", "b1"});
  expect_parts(come(kBen, 1, 2, "b2"), {kAnna, kBen}, {"a2", "b2"});
  EXPECT_FALSE(collectives_.next_deadline());
}

// Of who gave up and does not come again nothing is left for others.
TEST_F(AdHocCollectivesTest, OthersDoNotMeetWhoGaveUp) {
  come(kAnna, 0, 2, "a");
  expire(milliseconds(1000));
  EXPECT_THAT(come(kCleo, 0, 2, "c"), IsEmpty());
  expect_parts(come(kDan, 1, 2, "d"), {kCleo, kDan}, {"c", "d"});
  come(kAnna, 0, 2, "a");
  expire(milliseconds(1000));
  EXPECT_THAT(come(kCleo, 0, 3, "c"), IsEmpty());  // of another size, too
}

TEST_F(AdHocCollectivesTest, ARankThatWaitsIsTakenAndSoIsTheSize) {
  come(kAnna, 0);
  expect_failure(come(kCleo, 0), {kCleo}, Code::kUnavailable, "rank 0 is taken by PE 1");
  expect_failure(come(kCleo, 1, 3), {kCleo}, Code::kInvalidArgument,
                 "rank 1 says that there are 3 members, others said 2");
  EXPECT_EQ(come(kBen, 1).size(), 2U);
}

// As two threads of one process do.
TEST_F(AdHocCollectivesTest, AMemberMayWaitInSeveralRounds) {
  EXPECT_THAT(come(kAnna, 0, 2, "a1"), IsEmpty());
  EXPECT_THAT(come(kAnna, 0, 2, "a2"), IsEmpty());
  expect_parts(come(kBen, 1, 2, "b1"), {kAnna, kBen}, {"a1", "b1"});
  expect_parts(come(kBen, 1, 2, "b2"), {kAnna, kBen}, {"a2", "b2"});
}

TEST_F(AdHocCollectivesTest, ADeathIsToldToThoseWhoMetBefore) {
  for (SessionId who : {kAnna, kBen, kCleo}) come(who, static_cast<int>(who) - 1, 3);
  come(kAnna, 0, 3);
  come(kBen, 1, 3);
  expect_failure(disconnect(kCleo), {kAnna, kBen}, Code::kPeerLost,
                 "rank 2 (PE 3) is gone: it went");
  EXPECT_FALSE(collectives_.next_deadline());
  for (SessionId who : {kAnna, kBen})
    expect_failure(come(who, static_cast<int>(who) - 1, 3), {who}, Code::kPeerLost,
                   "rank 2 (PE 3) is gone");
}

TEST_F(AdHocCollectivesTest, ADeathDoesNotConcernOthersWhoMeetThereLater) {
  come(kAnna, 0);
  come(kBen, 1);
  disconnect(kBen);
  EXPECT_THAT(come(kCleo, 0), IsEmpty());
  EXPECT_EQ(come(kDan, 1).size(), 2U);
}

TEST_F(AdHocCollectivesTest, WhatAMemberCameToBeforeItWentStillCompletes) {
  come(kAnna, 0, 2, "a");
  EXPECT_THAT(disconnect(kAnna), IsEmpty());
  // Nobody is left there, so this is a new all-gather.
  EXPECT_THAT(come(kBen, 1, 2, "b"), IsEmpty());
  come(kCleo, 0, 3);
  expire(milliseconds(1000));
  come(kAnna, 0, 3, "a");
  come(kBen, 1, 3, "b");
  EXPECT_THAT(disconnect(kAnna), IsEmpty());
  expect_parts(come(kCleo, 2, 3, "c"), {kBen, kCleo}, {"a", "b", "c"});
  expect_failure(come(kCleo, 2, 3), {kCleo}, Code::kPeerLost, "rank 0 (PE 1) is gone");
}

TEST_F(AdHocCollectivesTest, LeavingAnswersWhatTheMemberItselfWaitsFor) {
  StoreAnswer own;
  EXPECT_THAT(leave(kAnna, own), IsEmpty());
  EXPECT_EQ(own.code, Code::kNotFound);
  come(kAnna, 0);
  expect_failure(leave(kAnna, own), {kAnna}, Code::kPeerLost, "this member, rank 0, is gone");
  EXPECT_EQ(own, StoreAnswer{.id = 7});
  EXPECT_FALSE(collectives_.next_deadline());
  leave(kAnna, own);
  EXPECT_EQ(own.code, Code::kNotFound);
}

// The names of programs that take a new one each time do not fill the store.
TEST_F(AdHocCollectivesTest, NamesThatNobodyUsesAreForgotten) {
  for (int i = 0; i < 10000; ++i) {
    name_ = "name " + std::to_string(i);
    come(kAnna, 0, 2, std::string(10, 'x'));
    ASSERT_EQ(come(kBen, 1, 2, std::string(20, 'y')).size(), 2U) << i;
  }
  disconnect(kBen);
  EXPECT_EQ(come(kAnna, 0).at(0).answer.code, Code::kPeerLost);
  name_ = "name 1";
  EXPECT_THAT(come(kAnna, 0), IsEmpty());
}

TEST_F(AdHocCollectivesTest, RefusesWhatItHasNoRoomFor) {
  come(kAnna, 0, 2, std::string(60, 'x'));
  expect_failure(come(kBen, 1, 2, "12345"), {kBen}, Code::kOutOfMemory, "as it can");
  EXPECT_EQ(come(kBen, 1, 2, "1234").size(), 2U);
  expect_failure(come(kBen, 2), {kBen}, Code::kInvalidArgument,
                 "the rank is 2, allowed are 0 to 1");
  expect_failure(come(kBen, 0, 0), {kBen}, Code::kInvalidArgument, "not 0");
  expect_failure(come(kBen, 0, 65537), {kBen}, Code::kInvalidArgument, "not 65537");
}

TEST_F(AdHocCollectivesTest, ACreationMakesAGroupOfThoseWhoCame) {
  EXPECT_THAT(create(kBen, 1, 2, "b"), IsEmpty());
  const std::string first = created(create(kAnna, 0, 2, "a"), {"a", "b"});
  EXPECT_THAT(first, HasSubstr("k#"));
  create(kAnna, 0);
  const std::string second = created(create(kBen, 1), {"", ""});
  EXPECT_NE(second, first);
  // Those who came have the places.
  StoreRequest request{.id = 1000,
                       .operation = StoreOperation::kGroupAllgather,
                       .keys = {second},
                       .timeout_ms = 1000,
                       .rank = 0,
                       .size = 2};
  StoreAnswers answers;
  collectives_.contribute(kCleo, "PE 3", request, now_, answers);
  expect_failure(answers, {kCleo}, Code::kUnavailable, "rank 0 is taken by PE 1");
  answers.clear();
  collectives_.contribute(kAnna, "PE 1", request, now_, answers);
  EXPECT_THAT(answers, IsEmpty());
  expect_failure(disconnect(kBen), {kAnna}, Code::kPeerLost, "rank 1 (PE 2) is gone: it went");
}

TEST_F(AdHocCollectivesTest, WhoGivesUpACreationHasNotCome) {
  create(kAnna, 0, 3);
  create(kBen, 1, 3);
  const StoreAnswers late = expire(milliseconds(1000));
  expect_failure(late, {kAnna, kBen}, Code::kTimeout, "1 of 3 members did not come: rank 2");
  EXPECT_THAT(create(kCleo, 2, 3), IsEmpty());
  EXPECT_THAT(create(kAnna, 0, 3), IsEmpty());
  EXPECT_EQ(create(kBen, 1, 3).size(), 3U);
}

TEST_F(AdHocCollectivesTest, ADeathFailsACreationForAll) {
  create(kAnna, 0, 3);
  create(kBen, 1, 3);
  expect_failure(disconnect(kAnna), {kBen}, Code::kPeerLost, "rank 0 (PE 1) is gone: it went");
  EXPECT_FALSE(collectives_.next_deadline());
  create(kDan, 0, 3);
  create(kBen, 1, 3);
  EXPECT_EQ(create(kCleo, 2, 3).size(), 3U);
}

TEST_F(AdHocCollectivesTest, AnotherSizeFailsACreationForAll) {
  create(kAnna, 0, 3);
  expect_failure(create(kBen, 1, 2), {kAnna, kBen}, Code::kInvalidArgument,
                 "rank 1 says that there are 2 members, others said 3");
  EXPECT_THAT(create(kAnna, 0, 2), IsEmpty());
  EXPECT_EQ(create(kBen, 1, 2).size(), 2U);
}

TEST_F(AdHocCollectivesTest, ARankOfACreationIsTakenOnce) {
  create(kAnna, 0);
  expect_failure(create(kBen, 0), {kBen}, Code::kUnavailable, "rank 0 is taken by PE 1");
  expect_failure(create(kAnna, 0), {kAnna}, Code::kUnavailable, "rank 0 is taken by PE 1");
  EXPECT_EQ(create(kBen, 1).size(), 2U);
}

TEST_F(AdHocCollectivesTest, AllgathersAndCreationsOfOneNameAreApart) {
  EXPECT_THAT(create(kAnna, 0), IsEmpty());
  EXPECT_THAT(come(kBen, 1), IsEmpty());
}

TEST_F(AdHocCollectivesTest, TheNextDeadlineIsThatOfTheFirstToGiveUp) {
  come(kAnna, 0);
  now_ += milliseconds(300);
  create(kBen, 1);
  EXPECT_EQ(collectives_.next_deadline(), Clock::time_point(milliseconds(1000)));
  EXPECT_EQ(expire(milliseconds(700)).size(), 1U);
  EXPECT_EQ(collectives_.next_deadline(), Clock::time_point(milliseconds(1300)));
  EXPECT_EQ(expire(milliseconds(300)).size(), 1U);
  EXPECT_FALSE(collectives_.next_deadline());
}

TEST_F(AdHocCollectivesTest, WhatIsKeptForSessionsIsCountedUntilItGoes) {
  come(1, 0);
  EXPECT_GT(charges_.all(), 0U);
  come(2, 1);
  EXPECT_GT(charges_.all(), 0U);  // it is known who met last
  disconnect(1);
  disconnect(2);
  EXPECT_EQ(charges_.all(), 0U);
}

TEST_F(AdHocCollectivesTest, OneSessionBringsSoMuchAndNoMore) {
  StoreCharges charges{StoreQuota{.session = 5000}.memory_share()};
  StoreCollectives collectives{StoreQuota{}, charges};
  StoreAnswers answers;
  int rank = 0;
  for (; answers.empty() && rank < 100; ++rank)
    collectives.contribute(1, "PE 1",
                           {.id = 1,
                            .operation = StoreOperation::kAllgather,
                            .keys = {"k"},
                            .timeout_ms = 1000,
                            .rank = rank,
                            .size = 100},
                           now_, answers);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].answer.code, Code::kOutOfMemory);
  EXPECT_LT(rank, 10);
}

}  // namespace
}  // namespace memspan
