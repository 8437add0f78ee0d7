// SPDX-License-Identifier: Apache-2.0
#include "node/segment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "world/membership.h"

namespace memspan {
namespace {

TEST(NodeSegmentTest, ASecondMappingShowsTheSameBoard) {
  NodeSegment made = NodeSegment::create(3, 1 << 20, true).value();
  NodeSegment attached = NodeSegment::attach(Fd(dup(made.descriptor()))).value();
  EXPECT_EQ(attached.peers(), 3);
  EXPECT_EQ(attached.header().oversubscribed, 1u);
  made.peer(2).pid.store(77);
  EXPECT_EQ(attached.peer(2).pid.load(), 77);
  EXPECT_EQ(std::string_view(made.header().secret, 64).find('\0'), std::string_view::npos);
}

TEST(NodeSegmentTest, RefusesImpossibleSizesAndOtherMemory) {
  EXPECT_EQ(NodeSegment::create(0, 1 << 20, false).code(), Code::kInvalidArgument);
  EXPECT_EQ(NodeSegment::create(kMostPeers + 1, 1 << 20, false).code(), Code::kInvalidArgument);
  Pages other = Pages::create(1 << 16, "other").value();
  EXPECT_EQ(NodeSegment::attach(Fd(dup(other.descriptor()))).code(), Code::kInvalidArgument);
}

TEST(NodeSegmentTest, ADeathIsNotedOnceAndOnlyOfMembers) {
  NodeSegment segment = NodeSegment::create(3, 1 << 20, false).value();
  ASSERT_TRUE(claim_rank(segment, 0).is_ok());
  ASSERT_TRUE(claim_rank(segment, 1).is_ok());
  segment.peer(0).state.store(PeerState::kLeft);
  EXPECT_FALSE(segment.mark_lost(0, -1));
  EXPECT_TRUE(segment.mark_lost(1, 9));
  EXPECT_FALSE(segment.mark_lost(1, 9));
  EXPECT_EQ(segment.header().alarms.load(), 1u);
  EXPECT_EQ(segment.peer(1).wait_status.load(), 9);
}

// As the launcher and a peer do.
TEST(NodeSegmentTest, TheKnownCauseOfADeathStaysWhenTwoNoticeItAtOnce) {
  constexpr int kCauses[] = {9, kReplacedProgram};
  constexpr int kRanks = 2000;
  NodeSegment segment = NodeSegment::create(kRanks, 1 << 20, false).value();
  std::atomic<int> at[2] = {-1, -1};
  std::atomic<int> marked[kRanks] = {};
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(claim_rank(segment, rank).is_ok());
  std::vector<std::thread> threads;
  std::vector<std::int32_t> seen[2];
  for (int me : {0, 1})
    threads.emplace_back([&, me] {
      for (int rank = 0; rank < kRanks; ++rank) {
        at[me] = rank;
        while (at[1 - me] < rank) std::this_thread::yield();
        if (segment.mark_lost(rank, kCauses[me])) marked[rank] += 1;
        seen[me].push_back(segment.peer(rank).wait_status);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(marked[rank], 1);
    EXPECT_EQ(seen[0][static_cast<std::size_t>(rank)], seen[1][static_cast<std::size_t>(rank)]);
  }
}

TEST(NodeSegmentTest, ARankBelongsToOneProcessUntilItLeaves) {
  NodeSegment segment = NodeSegment::create(1, 1 << 20, false).value();
  ASSERT_TRUE(claim_rank(segment, 0).is_ok());
  EXPECT_EQ(claim_rank(segment, 0).code(), Code::kUnavailable);
  segment.peer(0).state.store(PeerState::kLeft);
  EXPECT_TRUE(claim_rank(segment, 0).is_ok());
  EXPECT_EQ(segment.peer(0).generation.load(), 2u);
  ASSERT_TRUE(segment.mark_lost(0, -1));
  EXPECT_EQ(claim_rank(segment, 0).code(), Code::kUnavailable);
}

TEST(NodeSegmentTest, TheCoresOfAllItsProcessesCount) {
  CoreSet first;
  CoreSet last;
  first.set(0);
  last.set(kMostCores - 1);
  // Each bound to a core of its own.
  NodeSegment bound = NodeSegment::create(2, 1 << 20, true).value();
  bound.add_cores(first);
  bound.add_cores(last);
  bound.decide_oversubscription(2);
  EXPECT_FALSE(bound.is_oversubscribed());
  bound.decide_oversubscription(3);
  EXPECT_TRUE(bound.is_oversubscribed());
  // Both on the same one.
  NodeSegment shared = NodeSegment::create(2, 1 << 20, false).value();
  shared.add_cores(first);
  shared.add_cores(first);
  shared.decide_oversubscription(2);
  EXPECT_TRUE(shared.is_oversubscribed());
}

TEST(NodeSegmentTest, WhoJoinsAddsTheCoresThatItMayUse) {
  const CoreSet own = usable_core_set();
  EXPECT_EQ(static_cast<int>(own.count()), usable_cores());
  NodeSegment segment = NodeSegment::create(kMostPeers, 1 << 20, false).value();
  ASSERT_TRUE(claim_rank(segment, 0).is_ok());
  segment.decide_oversubscription(usable_cores());
  EXPECT_FALSE(segment.is_oversubscribed());
  segment.decide_oversubscription(usable_cores() + 1);
  EXPECT_TRUE(segment.is_oversubscribed());
}

TEST(NodeSegmentTest, TheFirstRequestToEndHolds) {
  NodeSegment segment = NodeSegment::create(2, 1 << 20, false).value();
  segment.request_exit(1, 5);
  segment.request_exit(0, 6);
  EXPECT_EQ(segment.header().exit_requested.load(), 2u);
  EXPECT_EQ(segment.header().exit_code.load(), 5);
  EXPECT_EQ(segment.header().exit_rank.load(), 1);
}

}  // namespace
}  // namespace memspan
