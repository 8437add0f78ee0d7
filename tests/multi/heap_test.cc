// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <random>
#include <vector>

#include "job.h"
#include "support/huge_pages.h"
#include "support/needs.h"

namespace memspan::multi {
namespace {

TEST(HeapTest, AllocationsAreUsableFromEverywhere) {
  Symmetric<int> place(1000);
  ASSERT_NE(place.get(), nullptr);
  std::vector<int> mine(1000, me());
  shmem_int_put(place.get(), mine.data(), mine.size(), next());
  shmem_barrier_all();
  for (std::size_t i = 0; i < mine.size(); ++i) ASSERT_EQ(place[i], previous());
}

TEST(HeapTest, CallocGivesZerosAlsoInMemoryThatWasUsed) {
  for (int round = 0; round < 5; ++round) {
    auto* place = static_cast<unsigned char*>(shmem_calloc(3000, 7));
    ASSERT_NE(place, nullptr);
    for (std::size_t i = 0; i < 21'000; ++i) ASSERT_EQ(place[i], 0);
    std::memset(place, 0xff, 21'000);
    shmem_free(place);
  }
}

TEST(HeapTest, AlignHonoursEveryPowerOfTwo) {
  for (std::size_t alignment = 1; alignment <= (1u << 20); alignment *= 2) {
    void* place = shmem_align(alignment, 100);
    ASSERT_NE(place, nullptr) << alignment;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % alignment, 0u);
    shmem_free(place);
  }
  EXPECT_EQ(shmem_align(24, 100), nullptr);
}

// A PE's own memory and that of a peer; a small block takes small pages.
TEST(HeapTest, LargeBlocksHaveHugePages) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  constexpr std::size_t kBytes = 16 * kHuge;
  Symmetric<char> place(kBytes);
  ASSERT_NE(place.get(), nullptr);
  Symmetric<char> small(1000);
  std::memset(place.get(), me(), kBytes);
  shmem_barrier_all();
  for (std::size_t at = 0; at < kBytes; at += kHuge / 2)
    ASSERT_EQ(shmem_char_g(place.get() + at, next()), static_cast<char>(next()));
  MEMSPAN_NEEDS("huge_pages");
  EXPECT_GE(smaps_bytes(place.get(), "ShmemPmdMapped"), kBytes - 2 * kHuge);
  if (const void* const theirs = shmem_ptr(place.get(), next()); theirs != nullptr)
    EXPECT_GE(smaps_bytes(theirs, "ShmemPmdMapped"), kBytes - 2 * kHuge);
}

TEST(HeapTest, NothingIsNull) {
  EXPECT_EQ(shmem_malloc(0), nullptr);
  EXPECT_EQ(shmem_calloc(0, 8), nullptr);
  shmem_free(nullptr);
}

TEST(HeapTest, TooMuchIsNullOnAllAndHarmsNothing) {
  EXPECT_EQ(shmem_malloc(std::size_t{1} << 40), nullptr);
  EXPECT_EQ(shmem_calloc(SIZE_MAX / 2, 4), nullptr);
  void* place = shmem_malloc(100);
  EXPECT_NE(place, nullptr);
  shmem_free(place);
}

TEST(HeapTest, ReallocKeepsTheContents) {
  auto* place = static_cast<char*>(shmem_realloc(nullptr, 100));
  ASSERT_NE(place, nullptr);
  std::memset(place, 'a' + me() % 26, 100);
  for (std::size_t bytes : {1000u, 300'000u, 50u, 5'000'000u}) {
    place = static_cast<char*>(shmem_realloc(place, bytes));
    ASSERT_NE(place, nullptr);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(place[i], static_cast<char>('a' + me() % 26));
  }
  EXPECT_EQ(shmem_realloc(place, 0), nullptr);
}

TEST(HeapTest, RandomCallsStaySymmetric) {
  std::mt19937 random(5);  // the same on every process
  std::vector<char*> blocks;
  for (int step = 0; step < 400; ++step) {
    if (blocks.empty() || random() % 3 != 0) {
      auto* made = static_cast<char*>(shmem_malloc(1 + random() % 60'000));
      ASSERT_NE(made, nullptr);
      blocks.push_back(made);
      // A peer finds it under the same address.
      shmem_char_p(made, static_cast<char>(step), next());
    } else {
      std::size_t victim = random() % blocks.size();
      shmem_free(blocks[victim]);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(victim));
    }
  }
  for (char* block : blocks) shmem_free(block);
}

TEST(HeapTest, PtrReachesEveryPeerOfThisHostOrIsNull) {
  Symmetric<long> word(1);
  word[0] = 100 + me();
  shmem_barrier_all();
  EXPECT_EQ(shmem_ptr(word.get(), me()), word.get());
  for (int peer = 0; peer < peers(); ++peer)
    if (auto* direct = static_cast<long*>(shmem_ptr(word.get(), peer))) {
      EXPECT_EQ(*direct, 100 + peer);
    }
  int local = 0;
  EXPECT_EQ(shmem_ptr(&local, me()), nullptr);
  EXPECT_EQ(shmem_addr_accessible(word.get(), next()), 1);
  EXPECT_EQ(shmem_addr_accessible(&local, next()), 0);
  EXPECT_EQ(shmem_pe_accessible(next()), 1);
  EXPECT_EQ(shmem_pe_accessible(peers()), 0);
  shmem_barrier_all();
}

}  // namespace
}  // namespace memspan::multi
