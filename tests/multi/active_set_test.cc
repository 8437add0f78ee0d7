// SPDX-License-Identifier: Apache-2.0
// The collectives of active sets: of all PEs, of every second one, of one alone.
#include <algorithm>
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

long sync_words[SHMEM_REDUCE_SYNC_SIZE] = {SHMEM_SYNC_VALUE};

struct Set {
  int start;
  int log_stride;
  int size;
  bool has_me() const {
    const int distance = me() - start;
    return distance >= 0 && distance % (1 << log_stride) == 0 && distance >> log_stride < size;
  }
  int my_index() const { return (me() - start) >> log_stride; }
  int pe(int index) const { return start + (index << log_stride); }
};

std::vector<Set> sets() {
  std::vector<Set> all = {{0, 0, peers()}, {0, 1, (peers() + 1) / 2}, {peers() - 1, 0, 1}};
  if (peers() > 2) all.push_back({1, 0, peers() - 1});
  return all;
}

constexpr std::size_t kCounts[] = {0, 1, 50, 3'000};

class ActiveSetTest : public testing::Test {
 protected:
  ActiveSetTest() : source_(3'000 * width()), dest_(3'000 * width()) {}
  static std::size_t width() { return static_cast<std::size_t>(peers()); }
  void fill() {
    for (std::size_t i = 0; i < 3'000 * width(); ++i)
      source_[i] = me() * 1'000'000L + static_cast<long>(i);
    std::fill_n(dest_.get(), 3'000 * width(), -1);
    shmem_barrier_all();
  }
  Symmetric<long> source_;
  Symmetric<long> dest_;
};

TEST_F(ActiveSetTest, BarrierAndSyncManyTimes) {
  for (const Set& set : sets()) {
    shmem_barrier_all();  // another set may not use the same pSync meanwhile
    if (!set.has_me()) continue;
    for (int i = 0; i < 20; ++i) {
      shmem_barrier(set.start, set.log_stride, set.size, sync_words);
      shmem_sync(set.start, set.log_stride, set.size, sync_words);
    }
  }
  shmem_barrier_all();
  EXPECT_EQ(sync_words[0], SHMEM_SYNC_VALUE);
}

TEST_F(ActiveSetTest, BroadcastLeavesTheRootAlone) {
  for (const Set& set : sets())
    for (const std::size_t count : kCounts) {
      fill();
      if (!set.has_me()) continue;
      const int root = set.size - 1;
      shmem_broadcast64(dest_.get(), source_.get(), count, root, set.start, set.log_stride,
                        set.size, sync_words);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(dest_[i],
                  set.my_index() == root ? -1 : set.pe(root) * 1'000'000L + static_cast<long>(i));
    }
}

TEST_F(ActiveSetTest, CollectFcollectAndAlltoall) {
  for (const Set& set : sets())
    for (const std::size_t count : kCounts) {
      fill();
      if (!set.has_me()) continue;
      const auto size = static_cast<std::size_t>(set.size);
      const auto mine = static_cast<std::size_t>(set.my_index());
      shmem_fcollect64(dest_.get(), source_.get(), count, set.start, set.log_stride, set.size,
                       sync_words);
      for (std::size_t m = 0; m < size && count > 0; ++m)
        ASSERT_EQ(dest_[m * count], set.pe(static_cast<int>(m)) * 1'000'000L);
      // One element more for each next member.
      shmem_collect64(dest_.get(), source_.get(), mine, set.start, set.log_stride, set.size,
                      sync_words);
      std::size_t at = 0;
      for (std::size_t m = 0; m < size; ++m)
        for (std::size_t i = 0; i < m; ++i)
          ASSERT_EQ(dest_[at++], set.pe(static_cast<int>(m)) * 1'000'000L + static_cast<long>(i));
      shmem_sync(set.start, set.log_stride, set.size, sync_words);
      shmem_alltoall64(dest_.get(), source_.get(), count, set.start, set.log_stride, set.size,
                       sync_words);
      for (std::size_t m = 0; m < size && count > 0; ++m)
        ASSERT_EQ(dest_[m * count],
                  set.pe(static_cast<int>(m)) * 1'000'000L + static_cast<long>(mine * count));
      const std::size_t half = count / 2;
      shmem_sync(set.start, set.log_stride, set.size, sync_words);
      shmem_alltoalls64(dest_.get(), source_.get(), 2, 1, half, set.start, set.log_stride, set.size,
                        sync_words);
      for (std::size_t m = 0; m < size && half > 0; ++m)
        ASSERT_EQ(dest_[2 * m * half],
                  set.pe(static_cast<int>(m)) * 1'000'000L + static_cast<long>(mine * half));
    }
}

TEST_F(ActiveSetTest, Reductions) {
  static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 3'000];
  for (const Set& set : sets())
    for (const std::size_t count : kCounts) {
      fill();
      if (!set.has_me()) continue;
      const auto reduced = static_cast<int>(count);
      shmem_long_sum_to_all(dest_.get(), source_.get(), reduced, set.start, set.log_stride,
                            set.size, work, sync_words);
      long pes = 0;
      for (int m = 0; m < set.size; ++m) pes += set.pe(m);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(dest_[i], pes * 1'000'000L + set.size * static_cast<long>(i));
      // In place.
      shmem_sync(set.start, set.log_stride, set.size, sync_words);
      shmem_long_max_to_all(source_.get(), source_.get(), reduced, set.start, set.log_stride,
                            set.size, work, sync_words);
      if (count > 0) EXPECT_EQ(source_[0], set.pe(set.size - 1) * 1'000'000L);
    }
}

TEST_F(ActiveSetTest, OldNamesAreTheNewOnes) {
  EXPECT_EQ(_my_pe(), me());
  EXPECT_EQ(_num_pes(), peers());
  start_pes(0);
  auto* word = static_cast<long*>(shmalloc(sizeof(long)));
  *word = 0;
  shmem_barrier_all();
  shmem_long_add(word, 2, next());
  shmem_long_inc(word, next());
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_fetch(word, next()), 3);
  EXPECT_EQ(*word, 3);
  shmem_barrier_all();
  EXPECT_EQ(shmem_long_cswap(word, 3, 9, next()), 3);
  shmem_long_wait(word, 3);
  EXPECT_EQ(*word, 9);
  shmem_barrier_all();
  EXPECT_EQ(shmem_swap(word, 10L, next()), 9);
  shmem_wait_until(word, SHMEM_CMP_EQ, 10L);
  shfree(word);
}

}  // namespace
}  // namespace memspan::multi
