// SPDX-License-Identifier: Apache-2.0
#include "job.h"

namespace memspan::multi {
namespace {

TEST(AtomicTest, AddsOfAllProcessesCount) {
  constexpr int kRounds = 2000;
  Symmetric<long> word(1);
  Symmetric<int> narrow(1);
  for (int i = 0; i < kRounds; ++i) {
    shmem_long_atomic_add(word.get(), 2, 0);
    shmem_int_atomic_inc(narrow.get(), peers() - 1);
  }
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_atomic_fetch(word.get(), 0), 2L * kRounds * peers());
  EXPECT_EQ(shmem_int_atomic_fetch(narrow.get(), peers() - 1), kRounds * peers());
}

TEST(AtomicTest, FetchAddGivesEveryNumberOnce) {
  constexpr std::size_t kEach = 500;
  auto all = kEach * static_cast<std::size_t>(peers());
  Symmetric<std::uint32_t> counter(1);
  Symmetric<std::uint32_t> seen(all);
  for (std::size_t i = 0; i < kEach; ++i) {
    std::uint32_t ticket = shmem_uint32_atomic_fetch_inc(counter.get(), 0);
    ASSERT_LT(ticket, all);
    shmem_uint32_atomic_inc(seen.get() + ticket, 0);
  }
  shmem_barrier_all();
  if (me() == 0) {
    for (std::size_t i = 0; i < all; ++i) ASSERT_EQ(seen[i], 1u);
  }
}

TEST(AtomicTest, SwapAndCompareSwap) {
  Symmetric<long long> word(1);
  shmem_longlong_atomic_set(word.get(), 10, next());
  shmem_barrier_all();
  EXPECT_EQ(shmem_longlong_atomic_swap(word.get(), 11, next()), 10);
  EXPECT_EQ(shmem_longlong_atomic_compare_swap(word.get(), 10, 12, next()), 11);
  EXPECT_EQ(shmem_longlong_atomic_compare_swap(word.get(), 11, 13, next()), 11);
  shmem_barrier_all();
  EXPECT_EQ(word[0], 13);
}

TEST(AtomicTest, FloatingPointSwaps) {
  Symmetric<double> word(1);
  Symmetric<float> narrow(1);
  shmem_double_atomic_set(word.get(), 1.5, next());
  shmem_float_atomic_set(narrow.get(), 2.5f, next());
  shmem_barrier_all();
  EXPECT_EQ(shmem_double_atomic_swap(word.get(), -0.25, next()), 1.5);
  EXPECT_EQ(shmem_float_atomic_fetch(narrow.get(), next()), 2.5f);
  shmem_barrier_all();
  EXPECT_EQ(word[0], -0.25);
}

TEST(AtomicTest, BitwiseForms) {
  Symmetric<std::uint64_t> word(1);
  shmem_uint64_atomic_or(word.get(), std::uint64_t{1} << me(), 0);
  shmem_barrier_all();
  std::uint64_t all = (std::uint64_t{1} << peers()) - 1;
  EXPECT_EQ(shmem_uint64_atomic_fetch(word.get(), 0), all);
  shmem_barrier_all();
  shmem_uint64_atomic_and(word.get(), ~(std::uint64_t{1} << me()), 0);
  shmem_barrier_all();
  EXPECT_EQ(shmem_uint64_atomic_fetch_xor(word.get(), 0, 0), 0u);
}

TEST(AtomicTest, NonBlockingFormsAreThereAfterQuiet) {
  Symmetric<long> word(1);
  long before = -1;
  shmem_long_atomic_fetch_add_nbi(&before, word.get(), 5, next());
  shmem_quiet();
  EXPECT_EQ(before, 0);
  shmem_barrier_all();
  EXPECT_EQ(word[0], 5);
}

TEST(AtomicTest, ASpinLockBuiltOfThemExcludes) {
  Symmetric<long> lock(2);
  for (int i = 0; i < 50; ++i) {
    while (shmem_long_atomic_compare_swap(lock.get(), 0, me() + 1, 0) != 0) {
    }
    long count = shmem_long_g(lock.get() + 1, 0);
    shmem_long_p(lock.get() + 1, count + 1, 0);
    shmem_quiet();
    shmem_long_atomic_set(lock.get(), 0, 0);
  }
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_g(lock.get() + 1, 0), 50L * peers());
}

}  // namespace
}  // namespace memspan::multi
