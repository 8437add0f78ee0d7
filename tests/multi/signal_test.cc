// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

TEST(SignalTest, DataIsThereWhenTheSignalIs) {
  constexpr std::size_t kCount = 3000;
  Symmetric<std::uint64_t> signal(1);
  Symmetric<std::uint64_t> acknowledged(1);
  Symmetric<long> data(kCount);
  std::vector<long> sent(kCount);
  for (std::uint64_t round = 1; round <= 200; ++round) {
    std::fill(sent.begin(), sent.end(), static_cast<long>(round) * 10 + me());
    shmem_long_put_signal(data.get(), sent.data(), kCount, signal.get(), round, SHMEM_SIGNAL_SET,
                          next());
    EXPECT_EQ(shmem_signal_wait_until(signal.get(), SHMEM_CMP_GE, round), round);
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_EQ(data[i], static_cast<long>(round) * 10 + previous());
    shmem_signal_set(acknowledged.get(), round, previous());
    shmem_signal_wait_until(acknowledged.get(), SHMEM_CMP_EQ, round);
  }
}

TEST(SignalTest, AddsOfAllProcessesAreCounted) {
  Symmetric<std::uint64_t> signal(1);
  for (int peer = 0; peer < peers(); ++peer) shmem_signal_add(signal.get(), 3, peer);
  EXPECT_EQ(
      shmem_signal_wait_until(signal.get(), SHMEM_CMP_EQ, 3u * static_cast<unsigned>(peers())),
      3u * static_cast<unsigned>(peers()));
  EXPECT_EQ(shmem_signal_fetch(signal.get()), 3u * static_cast<unsigned>(peers()));
}

TEST(SignalTest, ASignalNeedsNoData) {
  Symmetric<std::uint64_t> signal(1);
  shmem_putmem_signal_nbi(signal.get(), nullptr, 0, signal.get(), 9, SHMEM_SIGNAL_ADD, next());
  shmem_quiet();
  EXPECT_EQ(shmem_signal_wait_until(signal.get(), SHMEM_CMP_NE, 0), 9u);
}

}  // namespace
}  // namespace memspan::multi
