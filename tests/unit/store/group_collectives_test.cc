// SPDX-License-Identifier: Apache-2.0
#include "store/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/store/group_collectives.h"

namespace memspan {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(GroupCollectivesTest, TheLastToComeAnswersAllByRank) {
  EXPECT_THAT(meet(2, 0, "c"), IsEmpty());
  EXPECT_THAT(meet(0, 0, ""), IsEmpty());
  expect_parts(meet(1, 0, "b"), 0, {0, 1, 2}, {"", "b", "c"});
  EXPECT_FALSE(collectives_.next_deadline());
}

TEST_F(GroupCollectivesTest, AGroupOfOneMeetsAtOnce) {
  StoreRequest alone = request(0, 0, "me");
  alone.size = 1;
  expect_parts(meet(alone), 0, {0}, {"me"});
}

TEST_F(GroupCollectivesTest, OperationsOfOneGroupDoNotMix) {
  meet(0, 0, "a0");
  meet(0, 1, "a1");
  meet(1, 0, "b0");
  meet(1, 1, "b1");
  expect_parts(meet(2, 0, "c0"), 0, {0, 1, 2}, {"a0", "b0", "c0"});
  expect_parts(meet(2, 1, "c1"), 1, {0, 1, 2}, {"a1", "b1", "c1"});
}

TEST_F(GroupCollectivesTest, StaysInStepAfterATimeOut) {
  meet(0, 0, "a");
  meet(1, 0, "b");
  StoreAnswers late = expire(milliseconds(1000));
  ASSERT_EQ(late.size(), 2U);
  for (const StoreOutgoing& out : late) {
    EXPECT_EQ(out.answer.code, Code::kTimeout);
    EXPECT_THAT(out.answer.message, HasSubstr("1 of 3 members did not come: rank 2"));
  }
  meet(0, 1, "a1");
  // The late member still finds the parts of the others, who are not answered again.
  expect_parts(meet(2, 0, "c"), 0, {2}, {"a", "b", "c"});
  meet(1, 1, "b1");
  expect_parts(meet(2, 1, "c1"), 1, {0, 1, 2}, {"a1", "b1", "c1"});
}

TEST_F(GroupCollectivesTest, NamesAllWhoDidNotCome) {
  StoreRequest many = request(1, 0);
  many.size = 20;
  meet(many);
  EXPECT_THAT(expire(milliseconds(1000)).at(0).answer.message,
              AllOf(HasSubstr("19 of 20"),
                    HasSubstr("rank 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 3 "
                              "more")));
}

TEST_F(GroupCollectivesTest, WhoIsGoneFailsWhatItHadNotComeToAtOnce) {
  meet(0, 0, "a");
  meet(1, 0, "b");
  meet(2, 0, "c");
  meet(0, 1);
  meet(1, 1);
  const StoreAnswers answers = disconnect(2, "the connection ended");
  ASSERT_EQ(answers.size(), 2U);
  for (int rank : {0, 1}) {
    const StoreOutgoing& out = answers[static_cast<std::size_t>(rank)];
    EXPECT_EQ(out.to, session_of(rank));
    EXPECT_EQ(out.answer.id, static_cast<std::uint64_t>(100 + rank));
    EXPECT_EQ(out.answer.code, Code::kPeerLost);
    EXPECT_EQ(out.answer.message, "rank 2 (PE 2) is gone: the connection ended");
  }
  EXPECT_FALSE(collectives_.next_deadline());
  // Later operations fail at once, for all members with the same name.
  for (int rank : {0, 1}) EXPECT_EQ(refusal(request(rank, 2)).code, Code::kPeerLost);
}

TEST_F(GroupCollectivesTest, WhatAMemberCameToBeforeItWentStillCompletes) {
  meet(2, 0, "c");
  EXPECT_THAT(disconnect(2), IsEmpty());
  EXPECT_EQ(collectives_.next_deadline(), std::nullopt);
  // The group has only a member that is gone and is forgotten, so this begins a new one.
  EXPECT_THAT(meet(0, 0, "a"), IsEmpty());
  meet(2, 0, "c2");
  EXPECT_THAT(disconnect(2), IsEmpty());
  expect_parts(meet(1, 0, "b"), 0, {0, 1}, {"a", "b", "c2"});
}

TEST_F(GroupCollectivesTest, ARankThatIsGoneStaysGone) {
  meet(0, 0);
  meet(2, 0);
  disconnect(2);
  StoreAnswers answers;
  collectives_.contribute(99, "PE 2 again", request(2, 1), now_, answers);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].to, 99U);
  EXPECT_EQ(answers[0].answer.code, Code::kPeerLost);
  EXPECT_THAT(answers[0].answer.message, HasSubstr("rank 2 is gone: it went"));
}

TEST_F(GroupCollectivesTest, WhoLeavesIsGoneForTheOthers) {
  meet(0, 0);
  StoreAnswer own;
  EXPECT_THAT(leave(1, own), IsEmpty());
  EXPECT_EQ(own.code, Code::kNotFound);
  meet(1, 0);
  meet(2, 0);
  meet(0, 1);
  const StoreAnswers answers = leave(1, own);
  EXPECT_EQ(own, StoreAnswer{.id = 7});
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].answer.code, Code::kPeerLost);
  EXPECT_EQ(answers[0].answer.message, "rank 1 (PE 1) is gone: it left");
  leave(1, own);
  EXPECT_EQ(own.code, Code::kNotFound);
  EXPECT_THAT(disconnect(1), IsEmpty());
}

TEST_F(GroupCollectivesTest, LeavingAnswersWhatTheMemberItselfWaitsFor) {
  meet(0, 0);
  StoreAnswer own;
  const StoreAnswers answers = leave(0, own);
  EXPECT_EQ(own.code, Code::kOk);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].to, session_of(0));
  EXPECT_EQ(answers[0].answer.id, 0U);
  EXPECT_EQ(answers[0].answer.code, Code::kPeerLost);
  EXPECT_EQ(answers[0].answer.message, "this member, rank 0, is gone: it left");
  EXPECT_FALSE(collectives_.next_deadline());
}

TEST_F(GroupCollectivesTest, AGroupIsForgottenWhenNobodyIsLeft) {
  for (int rank : {0, 1, 2}) meet(rank, 5);
  StoreAnswer own;
  leave(0, own);
  disconnect(1);
  EXPECT_EQ(refusal(request(2, 6)).code, Code::kPeerLost);
  disconnect(2);
  // The name is free: another size, other sessions, numbers from anywhere.
  StoreRequest other = request(0, 0, "new");
  other.size = 1;
  expect_parts(meet(other), 0, {0}, {"new"});
}

TEST_F(GroupCollectivesTest, TheNextDeadlineIsThatOfTheFirstToGiveUp) {
  EXPECT_FALSE(collectives_.next_deadline());
  StoreRequest endless = request(0, 0);
  endless.timeout_ms = kNoTimeout;
  meet(endless);
  EXPECT_FALSE(collectives_.next_deadline());
  meet(1, 0);
  StoreRequest shorter = request(1, 1);
  shorter.timeout_ms = 400;
  meet(shorter);
  EXPECT_EQ(collectives_.next_deadline(), now_ + milliseconds(400));
  EXPECT_THAT(expire(milliseconds(399)), IsEmpty());
  EXPECT_EQ(expire(milliseconds(400)).size(), 1U);
  EXPECT_EQ(collectives_.next_deadline(), now_ + milliseconds(1000));
  EXPECT_EQ(expire(milliseconds(1000)).size(), 1U);
  EXPECT_FALSE(collectives_.next_deadline());
  disconnect(2);
  EXPECT_EQ(disconnect(1).size(), 0U);
}

TEST_F(GroupCollectivesTest, WhoGoesIsNotAnsweredAnyMore) {
  meet(0, 0);
  meet(1, 0);
  EXPECT_THAT(disconnect(1), IsEmpty());
  const StoreAnswers answers = expire(milliseconds(1000));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].to, session_of(0));
}

}  // namespace
}  // namespace memspan
