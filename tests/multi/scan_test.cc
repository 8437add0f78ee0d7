// SPDX-License-Identifier: Apache-2.0
#include <complex>

#include "job.h"

namespace memspan::multi {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 7, 8, 200, 256, 257, 5'000, 40'000};
constexpr std::size_t kMost = 40'000;

long value(int pe, std::size_t i) {
  return pe * 1'000L + static_cast<long>(i);
}

long sum_before(int pe, std::size_t i) {
  long sum = 0;
  for (int before = 0; before < pe; ++before) sum += value(before, i);
  return sum;
}

TEST(ScanTest, InclusiveAndExclusive) {
  Symmetric<long> source(kMost);
  Symmetric<long> dest(kMost);
  for (std::size_t i = 0; i < kMost; ++i) source[i] = value(me(), i);
  for (const std::size_t count : kCounts) {
    shmem_barrier_all();
    ASSERT_EQ(shmem_long_sum_inscan(SHMEM_TEAM_WORLD, dest.get(), source.get(), count), 0);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(dest[i], sum_before(me() + 1, i));
    shmem_barrier_all();
    ASSERT_EQ(shmem_long_sum_exscan(SHMEM_TEAM_WORLD, dest.get(), source.get(), count), 0);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(dest[i], sum_before(me(), i));
  }
}

TEST(ScanTest, InPlace) {
  Symmetric<long> data(kMost);
  for (const std::size_t count : kCounts) {
    for (std::size_t i = 0; i < count; ++i) data[i] = value(me(), i);
    shmem_barrier_all();
    ASSERT_EQ(shmem_long_sum_exscan(SHMEM_TEAM_WORLD, data.get(), data.get(), count), 0);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], sum_before(me(), i)) << count;
    shmem_barrier_all();
  }
}

TEST(ScanTest, SmallAndComplexTypes) {
  Symmetric<std::uint8_t> bytes(2);
  Symmetric<std::uint8_t> sums(2);
  bytes[0] = 200;  // wraps
  bytes[1] = 1;
  shmem_barrier_all();
  ASSERT_EQ(shmem_uint8_sum_inscan(SHMEM_TEAM_WORLD, sums.get(), bytes.get(), 2), 0);
  EXPECT_EQ(sums[0], static_cast<std::uint8_t>(200 * (me() + 1)));
  EXPECT_EQ(sums[1], me() + 1);
  Symmetric<memspan_complexd> terms(1);
  Symmetric<memspan_complexd> prefix(1);
  reinterpret_cast<double*>(terms.get())[0] = 1;
  reinterpret_cast<double*>(terms.get())[1] = -2;
  shmem_barrier_all();
  ASSERT_EQ(shmem_complexd_sum_exscan(SHMEM_TEAM_WORLD, prefix.get(), terms.get(), 1), 0);
  EXPECT_EQ(reinterpret_cast<double*>(prefix.get())[1], -2.0 * me());
}

TEST(ScanTest, OverATeamInItsOwnOrder) {
  shmem_team_t reversed;
  ASSERT_EQ(
      shmem_team_split_strided(SHMEM_TEAM_WORLD, peers() - 1, -1, peers(), nullptr, 0, &reversed),
      0);
  Symmetric<int> source(1);
  Symmetric<int> dest(1);
  source[0] = 1;
  shmem_barrier_all();
  ASSERT_EQ(shmem_int_sum_inscan(reversed, dest.get(), source.get(), 1), 0);
  EXPECT_EQ(dest[0], peers() - me());
  shmem_team_destroy(reversed);
}

}  // namespace
}  // namespace memspan::multi
