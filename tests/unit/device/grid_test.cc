// SPDX-License-Identifier: Apache-2.0
#include "device/host/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/cpu.h"
#include "device/stream.h"

namespace memspan {
namespace {

using testing::HasSubstr;

TEST(GridTest, EveryBlockRunsOnceAndKnowsItsNumber) {
  BlockThreads threads;
  for (const unsigned blocks : {1u, 2u, 7u, 300u}) {
    std::vector<std::atomic<int>> runs(blocks);
    ASSERT_TRUE(threads
                    .run(blocks,
                         [&](unsigned block) {
                           EXPECT_EQ(current_block(), block);
                           EXPECT_EQ(current_blocks(), blocks);
                           runs[block].fetch_add(1);
                         })
                    .is_ok());
    for (const auto& one : runs) EXPECT_EQ(one.load(), 1);
  }
  EXPECT_EQ(current_block(), 0u);
  EXPECT_EQ(current_blocks(), 1u);
}

// More blocks than cores by far: each barrier needs all of them.
TEST(GridTest, BlocksMeetHoweverManyThereAre) {
  BlockThreads threads;
  constexpr unsigned kBlocks = 40;
  constexpr int kRounds = 20;
  std::atomic<int> inside{0};
  std::atomic<int> meetings{0};
  ASSERT_TRUE(threads
                  .run(kBlocks,
                       [&](unsigned) {
                         for (int round = 0; round < kRounds; ++round) {
                           inside.fetch_add(1);
                           const Status met = meet_grid([&] {
                             EXPECT_EQ(inside.load(), static_cast<int>(kBlocks) * (round + 1));
                             meetings.fetch_add(1);
                             return Status::ok();
                           });
                           EXPECT_TRUE(met.is_ok());
                           EXPECT_EQ(meetings.load() >= round + 1, true);
                         }
                       })
                  .is_ok());
  EXPECT_EQ(meetings.load(), kRounds);
}

TEST(GridTest, ABlockMayWaitForALaterOneThatSaysSo) {
  BlockThreads threads;
  std::atomic<bool> has_run{false};
  ASSERT_TRUE(threads
                  .run(50,
                       [&](unsigned block) {
                         if (block == 49) has_run.store(true);
                         EXPECT_TRUE(let_other_blocks_run().is_ok());
                         while (!has_run.load()) std::this_thread::yield();
                       })
                  .is_ok());
}

TEST(GridTest, ThreadsAreNotMoreThanCoresWhereNobodyWaits) {
  BlockThreads threads;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int launch = 0; launch < 20; ++launch)
    ASSERT_TRUE(threads
                    .run(64,
                         [&](unsigned) {
                           const std::lock_guard<std::mutex> lock(mutex);
                           seen.insert(std::this_thread::get_id());
                         })
                    .is_ok());
  EXPECT_LE(seen.size(), static_cast<std::size_t>(usable_cores()));
}

TEST(GridTest, AFailureOfTheMeetingIsEverybodysAndTheGrids) {
  BlockThreads threads;
  std::atomic<int> told{0};
  const Status status = threads.run(4, [&](unsigned) {
    const Status met = meet_grid([] { return Status(Code::kPeerLost, "PE 3 is gone"); });
    if (met.code() == Code::kPeerLost) told.fetch_add(1);
  });
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_EQ(told.load(), 4);
}

TEST(GridTest, ABlockThatEndsWithoutTheBarrierIsTold) {
  BlockThreads threads;
  std::string why;
  ASSERT_TRUE(threads
                  .run(2,
                       [&](unsigned block) {
                         if (block == 0) return;
                         const Status met = meet_grid([] { return Status::ok(); });
                         EXPECT_EQ(met.code(), Code::kInvalidArgument);
                         why = met.message();
                       })
                  .is_ok());
  EXPECT_THAT(why, HasSubstr("1 of the grid's 2 blocks have ended without this barrier"));
}

TEST(GridTest, EveryBlockIsWorkOfTheLaunchersStream) {
  BlockThreads threads;
  Stream stream;
  std::atomic<int> own{0};
  ASSERT_TRUE(stream
                  .submit([&] {
                    return threads.run(8, [&](unsigned) {
                      if (stream.is_own_work() &&
                          stream.synchronize(Deadline::never()).code() == Code::kInvalidArgument)
                        own.fetch_add(1);
                      EXPECT_TRUE(meet_grid([] { return Status::ok(); }).is_ok());
                    });
                  })
                  .is_ok());
  ASSERT_TRUE(stream.synchronize(Deadline::never()).is_ok());
  EXPECT_EQ(own.load(), 8);
  EXPECT_FALSE(stream.is_own_work());
}

TEST(GridTest, SizesAreChecked) {
  BlockThreads threads;
  const auto nothing = [](unsigned) {};
  EXPECT_EQ(threads.run(0, nothing).code(), Code::kInvalidArgument);
  EXPECT_EQ(threads.run(BlockThreads::kMostBlocks + 1, nothing).code(), Code::kInvalidArgument);
}

TEST(GridTest, AThreadWithoutAGridMeetsAlone) {
  int calls = 0;
  EXPECT_TRUE(meet_grid([&] {
                ++calls;
                return Status::ok();
              }).is_ok());
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(let_other_blocks_run().is_ok());
}

}  // namespace
}  // namespace memspan
