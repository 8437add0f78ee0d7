// SPDX-License-Identifier: Apache-2.0
// What a group refuses, and the room that its parts take.
#include "store/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/store/group_collectives.h"

namespace memspan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(GroupCollectivesTest, AForgottenGroupGivesItsBytesBack) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(meet(0, 0, std::string(60, 'x')), IsEmpty());
    EXPECT_THAT(disconnect(0), IsEmpty());
  }
}

TEST_F(GroupCollectivesTest, ACompletedOperationGivesItsBytesBack) {
  for (int i = 0; i < 10; ++i) {
    meet(0, i, std::string(20, 'x'));
    meet(1, i, std::string(20, 'y'));
    EXPECT_EQ(meet(2, i, std::string(20, 'z')).size(), 3U);
  }
}

// Or a survivor that tries again and again would fill the store.
TEST_F(GroupCollectivesTest, AnOperationThatNobodyCanCompleteGivesItsBytesBack) {
  for (int rank : {0, 1, 2}) meet(rank, 0);
  EXPECT_THAT(meet(0, 1, std::string(60, 'x')), IsEmpty());
  EXPECT_EQ(disconnect(2).size(), 1U);
  for (int i = 2; i < 10; ++i)
    EXPECT_EQ(refusal(request(0, i, std::string(60, 'x'))).code, Code::kPeerLost);
  EXPECT_EQ(refusal(request(1, 1, std::string(60, 'x'))).code, Code::kPeerLost);
}

TEST_F(GroupCollectivesTest, RefusesBytesTooManyAndStaysAsItWas) {
  meet(0, 0, std::string(60, 'x'));
  EXPECT_EQ(refusal(request(1, 0, "12345")).code, Code::kOutOfMemory);
  EXPECT_THAT(meet(1, 0, "1234"), IsEmpty());
  EXPECT_EQ(meet(2, 0, "").size(), 3U);
}

// 16 times the two groups; all of them empty.
TEST_F(GroupCollectivesTest, RefusesEmptyPartsTooMany) {
  for (int operation = 0; operation < 32; ++operation) EXPECT_THAT(meet(0, operation), IsEmpty());
  EXPECT_EQ(refusal(request(0, 32)).code, Code::kOutOfMemory);
  disconnect(0);
  EXPECT_THAT(meet(0, 0), IsEmpty());
}

TEST_F(GroupCollectivesTest, RefusesAGroupTooMany) {
  for (const char* name : {"g", "h"}) {
    StoreRequest first = request(0, 0);
    first.keys = {name};
    EXPECT_THAT(meet(first), IsEmpty());
  }
  StoreRequest third = request(0, 0);
  third.keys = {"i"};
  EXPECT_EQ(refusal(third).code, Code::kOutOfMemory);
  disconnect(0);
  EXPECT_THAT(meet(third), IsEmpty());
}

TEST_F(GroupCollectivesTest, AnotherSizeIsRefusedAndNamesBoth) {
  meet(0, 0);
  StoreRequest other = request(1, 0);
  other.size = 4;
  const StoreAnswer answer = refusal(other);
  EXPECT_EQ(answer.code, Code::kInvalidArgument);
  EXPECT_THAT(answer.message, AllOf(HasSubstr("4 members"), HasSubstr("said 3")));
}

TEST_F(GroupCollectivesTest, ARankBeyondTheSizeIsRefusedAndNamesBoth) {
  const StoreAnswer answer = refusal(request(3, 0));
  EXPECT_EQ(answer.code, Code::kInvalidArgument);
  EXPECT_EQ(answer.message, "the rank is 3, allowed are 0 to 2");
  EXPECT_EQ(refusal(request(-1, 0)).code, Code::kInvalidArgument);
  StoreRequest huge = request(0, 0);
  for (std::uint32_t size : {0U, kMostMembers + 1}) {
    huge.size = size;
    EXPECT_EQ(refusal(huge).code, Code::kInvalidArgument) << size;
  }
  StoreRequest negative = request(0, 0);
  negative.delta = -1;
  EXPECT_EQ(refusal(negative).code, Code::kInvalidArgument);
}

TEST_F(GroupCollectivesTest, ARankThatSomebodyHasIsRefusedAndNamesWho) {
  meet(1, 0);
  StoreAnswers answers;
  collectives_.contribute(99, "a stranger", request(1, 0), now_, answers);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].answer.code, Code::kUnavailable);
  EXPECT_EQ(answers[0].answer.message, "rank 1 is taken by PE 1 [memspan-explain rank-taken]");
}

TEST_F(GroupCollectivesTest, AnOperationThatWasBeforeIsRefused) {
  meet(0, 3);
  const StoreAnswer answer = refusal(request(0, 3));
  EXPECT_EQ(answer.code, Code::kInvalidArgument);
  EXPECT_EQ(answer.message, "operation 3 was before; the next is 4");
}

TEST_F(GroupCollectivesTest, PartsThatTogetherAreTooLongFailForAll) {
  StoreCollectives roomy{StoreQuota{}, charges_};
  StoreAnswers answers;
  for (int rank = 0; rank < 3; ++rank)
    roomy.contribute(session_of(rank), "PE", request(rank, 0, std::string(kMaxValueBytes / 2, 'x')),
                     now_, answers);
  ASSERT_EQ(answers.size(), 3U);
  for (const StoreOutgoing& out : answers) EXPECT_EQ(out.answer.code, Code::kInvalidArgument);
}

// By what it is in memory: this group of a long name, with empty parts.
TEST_F(GroupCollectivesTest, WhatOneSessionBringsIsBoundedUntilItIsOver) {
  StoreCharges charges{StoreQuota{.session = 100000}.memory_share()};
  StoreCollectives collectives{StoreQuota{}, charges};
  StoreRequest one = request(0, 0);
  one.keys = {std::string(kMaxKeyBytes, 'g')};
  StoreAnswers answers;
  for (one.delta = 0; answers.empty() && one.delta < 100; ++one.delta)
    collectives.contribute(session_of(0), "PE 0", one, now_, answers);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].answer.code, Code::kOutOfMemory);
  EXPECT_LT(one.delta, 10);
  EXPECT_GT(charges.all(), 50000U);
  collectives.disconnect(session_of(0), "it went", answers);
  EXPECT_EQ(charges.all(), 0U);
}

}  // namespace
}  // namespace memspan
