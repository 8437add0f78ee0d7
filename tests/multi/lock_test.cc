// SPDX-License-Identifier: Apache-2.0
#include <thread>
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

TEST(LockTest, KeepsTheOthersOut) {
  Symmetric<long> lock(1);
  Symmetric<long> counter(1);
  constexpr long kTimes = 300;
  for (long i = 0; i < kTimes; ++i) {
    shmem_set_lock(lock.get());
    shmem_long_p(counter.get(), shmem_long_g(counter.get(), 0) + 1, 0);
    shmem_clear_lock(lock.get());
  }
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_g(counter.get(), 0), kTimes * peers());
  EXPECT_EQ(lock[0], 0);
}

TEST(LockTest, TestLockSaysWhetherItIsOurs) {
  Symmetric<long> lock(1);
  if (me() == 0) EXPECT_EQ(shmem_test_lock(lock.get()), 0);
  shmem_barrier_all();
  EXPECT_EQ(shmem_test_lock(lock.get()), 1);
  shmem_barrier_all();
  if (me() == 0) shmem_clear_lock(lock.get());
  shmem_barrier_all();
  if (me() == peers() - 1) {
    EXPECT_EQ(shmem_test_lock(lock.get()), 0);
    shmem_clear_lock(lock.get());
  }
}

// Each enters the queue only when the one before it is known to stand there.
TEST(LockTest, FirstComeFirstServed) {
  Symmetric<long> lock(1);
  Symmetric<long> order(static_cast<std::size_t>(peers()) + 1);
  Symmetric<int> turn(1);
  if (me() == 0) shmem_set_lock(lock.get());
  shmem_barrier_all();
  if (me() == 0) {
    for (int pe = 1; pe < peers(); ++pe) {
      // Who is last in the queue stands in the upper half of PE 0's word.
      shmem_int_p(turn.get(), 1, pe);
      shmem_quiet();
      shmem_uint32_wait_until(reinterpret_cast<std::uint32_t*>(lock.get()) + 1, SHMEM_CMP_EQ,
                              static_cast<std::uint32_t>(pe) + 1);
    }
    shmem_clear_lock(lock.get());
  } else {
    shmem_int_wait_until(turn.get(), SHMEM_CMP_EQ, 1);
    shmem_set_lock(lock.get());
    const long place = shmem_long_atomic_fetch_inc(order.get(), 0) + 1;
    shmem_clear_lock(lock.get());
    EXPECT_EQ(place, me());
  }
}

TEST(LockTest, ThreadsOfOneProcessTakeTurns) {
  Symmetric<long> lock(1);
  Symmetric<long> counter(1);
  constexpr int kThreads = 3;
  constexpr long kTimes = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (long i = 0; i < kTimes; ++i) {
        shmem_set_lock(lock.get());
        shmem_long_p(counter.get(), shmem_long_g(counter.get(), 0) + 1, 0);
        shmem_clear_lock(lock.get());
      }
    });
  for (std::thread& thread : threads) thread.join();
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_g(counter.get(), 0), kThreads * kTimes * peers());
}

}  // namespace
}  // namespace memspan::multi
