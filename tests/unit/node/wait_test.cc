// SPDX-License-Identifier: Apache-2.0
#include "node/wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "node/event_count.h"
#include "world/membership.h"
#include "world/route.h"

namespace memspan {
namespace {

using testing::HasSubstr;

class WaitTest : public testing::Test {
 protected:
  WaitTest() : segment_(NodeSegment::create(2, 1 << 20, false).value()) {
    allow_fences_from_peers();
    place_.segment = &segment_;
    place_.self = &segment_.peer(0);
    place_.generation = 1;
    place_.spins = 10;
  }
  void let_end(int rank, EndKind how) {
    segment_.peer(rank).state.store(PeerState::kJoined);
    segment_.peer(rank).end_kind.store(how);
    segment_.peer(rank).ended.store(1);
    segment_.header().ending.store(1);
  }
  NodeSegment segment_;
  WaitContext place_;
};

TEST_F(WaitTest, WhoHasBegunToLeaveIsLostToWhoNeedsIt) {
  let_end(1, EndKind::kFinalize);
  const Status status = wait_for(
      place_, WaitsFor::kSync, "test", Deadline::never(), [] { return false; },
      [&] { return place_.is_gone(1) ? 1 : -1; });
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("PE 1 (process 0) called shmem_finalize while"));
  EXPECT_EQ(first_dead_peer(segment_), 1);
}

// Between our look at what it stores and our look at whether it is there.
TEST_F(WaitTest, WhoDidItsPartAndLeftIsLostToNobody) {
  std::atomic<bool> is_done{false};
  segment_.header().ending.store(1);
  const Status status = wait_for(
      place_, WaitsFor::kSync, "test", Deadline::never(), [&] { return is_done.load(); },
      [&] {
        is_done = true;
        let_end(1, EndKind::kFinalize);
        return 1;
      });
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  EXPECT_EQ(first_dead_peer(segment_), -1);
}

TEST_F(WaitTest, NobodyIsLostByAnEndOfAnEarlierJob) {
  let_end(1, EndKind::kExit);
  place_.generation = 2;
  EXPECT_FALSE(place_.is_gone(1));
  EXPECT_FALSE(place_.has_ends());
}

TEST_F(WaitTest, AWordThatNobodyCanStoreAnyMoreIsNotWaitedFor) {
  let_end(1, EndKind::kExit);
  place_.has_threads = false;
  const Status status =
      wait_for(place_, WaitsFor::kData, "test", Deadline::never(), [] { return false; });
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("ended (exit or the return of main)"));
}

// Three peers: this one, one that has left, and one that comes out of its waits for a while.
TEST_F(WaitTest, NobodyIsLeftWhenAllOthersWaitInVain) {
  segment_ = NodeSegment::create(3, 1 << 20, false).value();
  place_.self = &segment_.peer(0);
  place_.has_threads = false;
  let_end(1, EndKind::kExit);
  std::uint64_t looks = 0;
  const Status status =
      wait_for(place_, WaitsFor::kData, "test", Deadline::after(std::chrono::seconds(20)), [&] {
        if (segment_.peer(0).stuck.load() == 0) return false;
        const std::uint64_t wait = ++looks < 50 ? looks / 4 + 1 : 50;
        segment_.peer(2).stuck.store(wait << 32 | looks / 4);
        return false;
      });
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("PE 1"));
  EXPECT_GE(looks, 57u);  // four are one look of the other's
  EXPECT_EQ(segment_.peer(0).stuck.load(), 0u);
}

TEST_F(WaitTest, AWordThatAnotherThreadMayStoreIsWaitedFor) {
  let_end(1, EndKind::kExit);
  EXPECT_EQ(wait_for(place_, WaitsFor::kData, "test", Deadline::after(std::chrono::milliseconds(5)),
                     [] { return false; })
                .code(),
            Code::kTimeout);
  EXPECT_EQ(first_dead_peer(segment_), -1);
}

TEST_F(WaitTest, ReturnsAtOnceWhenReady) {
  EXPECT_TRUE(
      wait_for(place_, WaitsFor::kData, "test", Deadline::never(), [] { return true; }).is_ok());
}

TEST_F(WaitTest, WakesASleeperThroughItsDoorbell) {
  std::atomic<int> word{0};
  std::thread writer([&] {
    while (segment_.peer(0).sleeps.load() == 0) std::this_thread::yield();
    word.store(1, std::memory_order_release);
    NodeSegment::ring(segment_.peer(0));
  });
  EXPECT_TRUE(wait_for(place_, WaitsFor::kData, "test", Deadline::never(), [&] {
                return word.load(std::memory_order_acquire) == 1;
              }).is_ok());
  writer.join();
  EXPECT_EQ(segment_.peer(0).sleeps.load(), 0u);
  EXPECT_EQ(segment_.peer(0).sleeps_for_data.load(), 0u);
}

// What makes a put to a process that waits in a barrier cost what any put costs.
TEST_F(WaitTest, AMeetingIsNotArmedForData) {
  std::atomic<int> word{0};
  const Route route{.delta = 0, .slot = &segment_.peer(0), .link = nullptr};
  std::thread writer([&] {
    while (segment_.peer(0).sleeps.load() == 0) std::this_thread::yield();
    EXPECT_EQ(segment_.peer(0).sleeps_for_data.load(), 0u);
    route.notify();
    EXPECT_EQ(segment_.peer(0).doorbell.load(), 0u);
    word.store(1, std::memory_order_release);
    route.notify_sync();
    EXPECT_EQ(segment_.peer(0).doorbell.load(), 1u);
  });
  EXPECT_TRUE(wait_for(place_, WaitsFor::kSync, "test", Deadline::never(), [&] {
                return word.load(std::memory_order_acquire) == 1;
              }).is_ok());
  writer.join();
}

TEST_F(WaitTest, WritersOfOtherDataRingRarely) {
  std::atomic<int> word{0};
  const Route route{.delta = 0, .slot = &segment_.peer(0), .link = nullptr};
  std::thread writer([&] {
    while (segment_.peer(0).sleeps.load() == 0) std::this_thread::yield();
    const auto begin = Clock::now();
    while (Clock::now() - begin < std::chrono::milliseconds(20)) route.notify();
    const auto naps = (Clock::now() - begin) / std::chrono::microseconds(200);
    EXPECT_GT(segment_.peer(0).doorbell.load(), 0u);
    EXPECT_LT(segment_.peer(0).doorbell.load(), 10u + static_cast<unsigned>(naps));
    word.store(1, std::memory_order_release);
    route.notify();
  });
  EXPECT_TRUE(wait_for(place_, WaitsFor::kData, "test", Deadline::never(), [&] {
                return word.load(std::memory_order_acquire) == 1;
              }).is_ok());
  writer.join();
}

TEST_F(WaitTest, ASleeperSeesAPlainStoreWithoutARing) {
  std::atomic<int> word{0};
  std::thread writer([&] {
    while (segment_.peer(0).sleeps.load() == 0) std::this_thread::yield();
    word.store(1, std::memory_order_release);
  });
  EXPECT_TRUE(wait_for(place_, WaitsFor::kData, "test", Deadline::never(), [&] {
                return word.load(std::memory_order_acquire) == 1;
              }).is_ok());
  writer.join();
}

TEST_F(WaitTest, EndsAtItsDeadline) {
  Status status = wait_for(place_, WaitsFor::kData, "test",
                           Deadline::after(std::chrono::milliseconds(5)), [] { return false; });
  EXPECT_EQ(status.code(), Code::kTimeout);
}

TEST_F(WaitTest, EndsWhenAPeerDiesAndSaysWho) {
  ASSERT_TRUE(claim_rank(segment_, 1).is_ok());
  std::thread watcher([&] {
    while (segment_.peer(0).sleeps.load() == 0) std::this_thread::yield();
    segment_.mark_lost(1, 9);
  });
  Status status =
      wait_for(place_, WaitsFor::kData, "test", Deadline::never(), [] { return false; });
  watcher.join();
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("PE 1 (process "));
  EXPECT_THAT(status.message(), HasSubstr("killed by signal 9"));
}

TEST_F(WaitTest, NamesTheFirstOfSeveralDeaths) {
  NodeSegment segment = NodeSegment::create(3, 1 << 20, false).value();
  place_.segment = &segment;
  place_.self = &segment.peer(0);
  for (int rank : {1, 2}) ASSERT_TRUE(claim_rank(segment, rank).is_ok());
  segment.mark_lost(2, -1);
  segment.mark_lost(1, -1);
  Status status =
      wait_for(place_, WaitsFor::kData, "test", Deadline::never(), [] { return false; });
  EXPECT_THAT(status.message(), HasSubstr("PE 2 (process "));
  place_.segment = &segment_;
  place_.self = &segment_.peer(0);
}

TEST_F(WaitTest, OfThoseThatAWaitNeedsTheFirstToBeLostCounts) {
  NodeSegment segment = NodeSegment::create(4, 1 << 20, false).value();
  for (int rank : {1, 2, 3}) ASSERT_TRUE(claim_rank(segment, rank).is_ok());
  segment.mark_departed(3);
  segment.mark_lost(2, -1);
  EXPECT_EQ(earlier_lost(segment, -1, 1), 1);
  EXPECT_EQ(earlier_lost(segment, 1, 2), 2);  // 1 has only begun to leave
  EXPECT_EQ(earlier_lost(segment, 2, 1), 2);
  EXPECT_EQ(earlier_lost(segment, 2, 3), 3);
  EXPECT_EQ(earlier_lost(segment, 3, 2), 3);
}

// When all have come, nobody is awaited any more, and the wait is about to end.
TEST_F(WaitTest, WhoWasAwaitedLastStaysNamed) {
  int looks_since_named = 0;
  const auto ready = [&] { return looks_since_named > 0 && ++looks_since_named > 4; };
  const auto awaited = [&] {
    if (looks_since_named > 0) return -1;
    looks_since_named = 1;
    return 1;
  };
  EXPECT_TRUE(wait_for(place_, WaitsFor::kSync, "test", Deadline::never(), ready,
                       Needs{[] { return -1; }, awaited})
                  .is_ok());
  EXPECT_EQ(thread_counters().awaited.load(), 1);
}

TEST_F(WaitTest, EndsWhenAPeerAsksTheJobToEnd) {
  segment_.request_exit(1, 3);
  Status status =
      wait_for(place_, WaitsFor::kData, "test", Deadline::never(), [] { return false; });
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("code 3"));
}

TEST_F(WaitTest, AKnownDeathEndsNothing) {
  ASSERT_TRUE(claim_rank(segment_, 1).is_ok());
  segment_.mark_lost(1, 9);
  place_.known_alarms.store(1);
  EXPECT_EQ(wait_for(place_, WaitsFor::kData, "test", Deadline::after(std::chrono::milliseconds(2)),
                     [] { return false; })
                .code(),
            Code::kTimeout);
}

}  // namespace
}  // namespace memspan
