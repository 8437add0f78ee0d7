// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "job.h"

namespace memspan::multi {
namespace {

TEST(WaitTest, EveryComparison) {
  Symmetric<int> words(6);
  shmem_int_atomic_set(words.get() + 0, 5, next());
  shmem_int_atomic_set(words.get() + 1, 5, next());
  shmem_int_atomic_set(words.get() + 2, 5, next());
  shmem_int_atomic_set(words.get() + 3, 5, next());
  shmem_int_atomic_set(words.get() + 4, -5, next());
  shmem_int_atomic_set(words.get() + 5, -5, next());
  shmem_int_wait_until(words.get() + 0, SHMEM_CMP_EQ, 5);
  shmem_int_wait_until(words.get() + 1, SHMEM_CMP_NE, 0);
  shmem_int_wait_until(words.get() + 2, SHMEM_CMP_GT, 4);
  shmem_int_wait_until(words.get() + 3, SHMEM_CMP_GE, 5);
  shmem_int_wait_until(words.get() + 4, SHMEM_CMP_LT, 0);
  shmem_int_wait_until(words.get() + 5, SHMEM_CMP_LE, -5);
  EXPECT_EQ(shmem_int_test(words.get(), SHMEM_CMP_EQ, 5), 1);
  EXPECT_EQ(shmem_int_test(words.get(), SHMEM_CMP_NE, 5), 0);
}

TEST(WaitTest, UnsignedWordsCompareUnsigned) {
  Symmetric<std::uint64_t> word(1);
  shmem_uint64_atomic_set(word.get(), UINT64_MAX, next());
  shmem_uint64_wait_until(word.get(), SHMEM_CMP_GT, 1);
  EXPECT_EQ(word[0], UINT64_MAX);
}

TEST(WaitTest, AllAnyAndSome) {
  auto count = static_cast<std::size_t>(peers());
  Symmetric<long> words(count);
  for (int peer = 0; peer < peers(); ++peer)
    shmem_long_atomic_set(words.get() + me(), me() + 1, peer);
  std::vector<int> status(count, 0);
  std::vector<std::size_t> order;
  for (std::size_t done = 0; done < count; ++done) {
    std::size_t found =
        shmem_long_wait_until_any(words.get(), count, status.data(), SHMEM_CMP_NE, 0);
    ASSERT_LT(found, count);
    EXPECT_EQ(status[found], 0);
    status[found] = 1;
  }
  EXPECT_EQ(shmem_long_wait_until_any(words.get(), count, status.data(), SHMEM_CMP_NE, 0),
            SIZE_MAX);
  EXPECT_EQ(shmem_long_test_any(words.get(), count, nullptr, SHMEM_CMP_EQ, 99), SIZE_MAX);
  shmem_long_wait_until_all(words.get(), count, nullptr, SHMEM_CMP_GT, 0);
  EXPECT_EQ(shmem_long_test_all(words.get(), count, nullptr, SHMEM_CMP_GT, 0), 1);
  EXPECT_EQ(shmem_long_test_all(words.get(), count, nullptr, SHMEM_CMP_GT, 1), 0);
  EXPECT_EQ(shmem_long_test_all(words.get(), 0, nullptr, SHMEM_CMP_GT, 1), 1);
  std::vector<std::size_t> indices(count, 77);
  EXPECT_EQ(
      shmem_long_wait_until_some(words.get(), count, indices.data(), nullptr, SHMEM_CMP_GE, 1),
      count);
  EXPECT_EQ(
      shmem_long_test_some(words.get(), count, indices.data(), status.data(), SHMEM_CMP_GE, 1), 0u);
  EXPECT_EQ(
      shmem_long_test_some(words.get(), count, indices.data(), nullptr, SHMEM_CMP_EQ, peers()), 1u);
  EXPECT_EQ(indices[0], count - 1);
}

TEST(WaitTest, VectorsHaveAValueForEachWord) {
  auto count = static_cast<std::size_t>(peers());
  Symmetric<int> words(count);
  for (int peer = 0; peer < peers(); ++peer)
    shmem_int_atomic_set(words.get() + me(), 10 * me(), peer);
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 10 * static_cast<int>(i);
  shmem_int_wait_until_all_vector(words.get(), count, nullptr, SHMEM_CMP_EQ, values.data());
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(words[i], values[i]);
}

// Message passing: the flag is never seen before what was put and fenced before it.
TEST(WaitTest, FenceOrdersDataBeforeTheFlag) {
  Symmetric<long> data(8);
  Symmetric<long> flag(1);
  const long rounds = peers() > 2 ? 2'000 : 20'000;
  for (long round = 1; round <= rounds; ++round) {
    long value = round * 3;
    shmem_long_put(data.get() + round % 8, &value, 1, next());
    shmem_fence();
    shmem_long_p(flag.get(), round, next());
    shmem_quiet();  // links may hold the flag back until then
    shmem_long_wait_until(flag.get(), SHMEM_CMP_GE, round);
    ASSERT_EQ(data[static_cast<std::size_t>(round % 8)], value);
    if (round % 4 == 0) shmem_sync_all();
  }
}

}  // namespace
}  // namespace memspan::multi
