// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 5, 100, 300, 20'000};
constexpr std::size_t kMost = 20'000;

long value(int pe, std::size_t i) {
  return pe * 100'000L + static_cast<long>(i);
}

class CollectiveTest : public testing::Test {
 protected:
  CollectiveTest() : source_(kMost * width()), dest_(kMost * width()) {}
  static std::size_t width() { return static_cast<std::size_t>(peers()); }
  void fill(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) source_[i] = value(me(), i);
    std::fill_n(dest_.get(), kMost * width(), -1);
    shmem_barrier_all();
  }
  Symmetric<long> source_;
  Symmetric<long> dest_;
};

TEST_F(CollectiveTest, BroadcastFromEveryRootWritesTheRootToo) {
  for (std::size_t count : kCounts)
    for (int root = 0; root < peers(); ++root) {
      fill(count);
      ASSERT_EQ(shmem_long_broadcast(SHMEM_TEAM_WORLD, dest_.get(), source_.get(), count, root), 0);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(dest_[i], value(root, i));
    }
}

TEST_F(CollectiveTest, FcollectAndCollect) {
  for (std::size_t count : kCounts) {
    fill(count);
    ASSERT_EQ(shmem_long_fcollect(SHMEM_TEAM_WORLD, dest_.get(), source_.get(), count), 0);
    for (int peer = 0; peer < peers(); ++peer)
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(dest_[static_cast<std::size_t>(peer) * count + i], value(peer, i));
    fill(count);
    auto size_of = [count](int pe) { return pe % 2 == 0 ? count : count / 2; };
    ASSERT_EQ(shmem_long_collect(SHMEM_TEAM_WORLD, dest_.get(), source_.get(), size_of(me())), 0);
    std::size_t at = 0;
    for (int peer = 0; peer < peers(); ++peer)
      for (std::size_t i = 0; i < size_of(peer); ++i) ASSERT_EQ(dest_[at++], value(peer, i));
  }
}

TEST_F(CollectiveTest, AlltoallAndAlltoalls) {
  for (std::size_t count : kCounts) {
    std::size_t block = count / 2;
    fill(block * width());
    ASSERT_EQ(shmem_long_alltoall(SHMEM_TEAM_WORLD, dest_.get(), source_.get(), block), 0);
    auto mine = static_cast<std::size_t>(me());
    for (int peer = 0; peer < peers(); ++peer)
      for (std::size_t i = 0; i < block; ++i)
        ASSERT_EQ(dest_[static_cast<std::size_t>(peer) * block + i], value(peer, mine * block + i));
    fill(block * width());
    ASSERT_EQ(shmem_long_alltoalls(SHMEM_TEAM_WORLD, dest_.get(), source_.get(), 2, 1, block), 0);
    for (int peer = 0; peer < peers(); ++peer)
      for (std::size_t i = 0; i < block; ++i)
        ASSERT_EQ(dest_[2 * (static_cast<std::size_t>(peer) * block + i)],
                  value(peer, mine * block + i));
  }
}

TEST_F(CollectiveTest, UntypedFormsCountBytes) {
  fill(10);
  ASSERT_EQ(shmem_fcollectmem(SHMEM_TEAM_WORLD, dest_.get(), source_.get(), 10 * sizeof(long)), 0);
  EXPECT_EQ(dest_[10 * width() - 1], value(peers() - 1, 9));
  fill(10);
  ASSERT_EQ(shmem_broadcastmem(SHMEM_TEAM_WORLD, dest_.get(), source_.get(), 10 * sizeof(long), 0),
            0);
  EXPECT_EQ(dest_[9], value(0, 9));
}

TEST_F(CollectiveTest, BackToBackWithoutBarriers) {
  fill(1);
  Symmetric<long> sums(1000);
  for (std::size_t round = 0; round < 1000; ++round) {
    source_[0] = static_cast<long>(round) + me();
    ASSERT_EQ(shmem_long_max_reduce(SHMEM_TEAM_WORLD, sums.get() + round, source_.get(), 1), 0);
  }
  for (std::size_t round = 0; round < 1000; ++round)
    ASSERT_EQ(sums[round], static_cast<long>(round) + peers() - 1);
}

TEST_F(CollectiveTest, BarrierCompletesPuts) {
  fill(0);
  for (long round = 1; round <= 500; ++round) {
    shmem_long_p(dest_.get() + me(), round, next());
    shmem_barrier_all();
    ASSERT_EQ(dest_[static_cast<std::size_t>(previous())], round);
    shmem_sync_all();
  }
}

}  // namespace
}  // namespace memspan::multi
