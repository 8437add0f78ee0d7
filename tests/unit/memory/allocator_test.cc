// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace memspan {
namespace {

TEST(AllocatorTest, HandsOutTheWholeRangeAndNoMore) {
  Allocator allocator(1024);
  EXPECT_EQ(allocator.allocate(1024), 0u);
  EXPECT_EQ(allocator.allocate(1), std::nullopt);
  EXPECT_TRUE(allocator.free(0));
  EXPECT_EQ(allocator.largest_free(), 1024u);
}

TEST(AllocatorTest, RefusesNothingAndTooMuch) {
  Allocator allocator(1024);
  EXPECT_EQ(allocator.allocate(0), std::nullopt);
  EXPECT_EQ(allocator.allocate(1025), std::nullopt);
  EXPECT_EQ(allocator.allocate(UINT64_MAX), std::nullopt);
  EXPECT_EQ(allocator.allocate(16, std::uint64_t{1} << 63), std::nullopt);
}

TEST(AllocatorTest, ReusesAFreedBlock) {
  Allocator allocator(1024);
  auto first = allocator.allocate(64);
  allocator.allocate(64);
  EXPECT_TRUE(allocator.free(*first));
  EXPECT_EQ(allocator.allocate(64), first);
}

TEST(AllocatorTest, MergesFreedNeighboursOnBothSides) {
  Allocator allocator(96);
  allocator.allocate(32);
  auto middle = allocator.allocate(32);
  auto last = allocator.allocate(32);
  EXPECT_TRUE(allocator.free(0));
  EXPECT_TRUE(allocator.free(*last));
  EXPECT_EQ(allocator.largest_free(), 32u);
  EXPECT_TRUE(allocator.free(*middle));
  EXPECT_EQ(allocator.largest_free(), 96u);
}

TEST(AllocatorTest, AlignsAndKeepsTheGapUsable) {
  Allocator allocator(4096);
  allocator.allocate(16);
  EXPECT_EQ(allocator.allocate(16, 1024), 1024u);
  EXPECT_EQ(allocator.allocate(1008), 16u);
}

TEST(AllocatorTest, AlignsAtTheVeryEnd) {
  Allocator allocator(4096);
  allocator.allocate(3072);
  EXPECT_EQ(allocator.allocate(1024, 1024), 3072u);
}

TEST(AllocatorTest, FreesOnlyWhatItGave) {
  Allocator allocator(1024);
  auto block = allocator.allocate(64);
  EXPECT_FALSE(allocator.free(*block + 16));
  EXPECT_FALSE(allocator.free(512));
  EXPECT_TRUE(allocator.free(*block));
  EXPECT_FALSE(allocator.free(*block));
  EXPECT_EQ(allocator.bytes_in_use(), 0u);
}

TEST(AllocatorTest, ResizesInPlaceWhenThereIsRoom) {
  Allocator allocator(256);
  auto block = allocator.allocate(64);
  EXPECT_TRUE(allocator.resize(*block, 128));
  EXPECT_EQ(allocator.size_of(*block), 128u);
  auto next = allocator.allocate(64);
  EXPECT_EQ(next, 128u);
  EXPECT_FALSE(allocator.resize(*block, 192));
  EXPECT_TRUE(allocator.resize(*block, 16));
  EXPECT_EQ(allocator.allocate(112), 16u);
  EXPECT_FALSE(allocator.resize(999, 16));
}

// Random calls against a simple model: blocks never overlap, and all memory comes back.
TEST(AllocatorTest, KeepsItsBooksUnderRandomCalls) {
  constexpr std::uint64_t kBytes = 1 << 20;
  constexpr unsigned kSeed = 20240229;
  std::mt19937 random(kSeed);
  Allocator allocator(kBytes);
  std::map<std::uint64_t, std::uint64_t> blocks;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0 || blocks.empty()) {
      std::uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 65536 : 512);
      std::uint64_t alignment = std::uint64_t{16} << (random() % 9);
      auto offset = allocator.allocate(bytes, alignment);
      if (!offset) continue;
      ASSERT_EQ(*offset % alignment, 0u);
      ASSERT_LE(*offset + bytes, kBytes);
      auto next = blocks.lower_bound(*offset);
      ASSERT_TRUE(next == blocks.end() || *offset + bytes <= next->first);
      ASSERT_TRUE(next == blocks.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= *offset);
      blocks[*offset] = bytes;
    } else {
      auto block = std::next(blocks.begin(), static_cast<std::ptrdiff_t>(random() % blocks.size()));
      ASSERT_TRUE(allocator.free(block->first));
      blocks.erase(block);
    }
  }
  for (const auto& [offset, bytes] : blocks) ASSERT_TRUE(allocator.free(offset));
  EXPECT_EQ(allocator.largest_free(), kBytes);
  EXPECT_EQ(allocator.bytes_in_use(), 0u);
}

TEST(AllocatorTest, TheSameCallsGiveTheSameOffsets) {
  Allocator one(1 << 20);
  Allocator two(1 << 20);
  std::mt19937 random(7);
  std::vector<std::uint64_t> given;
  for (int step = 0; step < 2000; ++step) {
    std::uint64_t bytes = 1 + random() % 5000;
    auto offset = one.allocate(bytes);
    ASSERT_EQ(offset, two.allocate(bytes));
    if (offset) given.push_back(*offset);
    if (given.size() > 50) {
      std::uint64_t victim = given[random() % given.size()];
      ASSERT_EQ(one.free(victim), two.free(victim));
      std::erase(given, victim);
    }
  }
}

}  // namespace
}  // namespace memspan
