// SPDX-License-Identifier: Apache-2.0
#include "pgas/symmetric_memory.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <random>

#include "unit/pgas/thread_job.h"

namespace memspan {
namespace {

using testing::HasSubstr;

std::uint64_t offset_of(Team& team, void* pointer) {
  return static_cast<std::uint64_t>(static_cast<std::byte*>(pointer) - team.world().heap().base());
}

class SymmetricMemoryTest : public testing::TestWithParam<JobShape> {};
INSTANTIATE_TEST_SUITE_P(Jobs, SymmetricMemoryTest, all_job_shapes(), job_name);

TEST_P(SymmetricMemoryTest, GivesTheSameOffsetEverywhereThroughRandomCalls) {
  run_job(GetParam(), [](Team& team) {
    std::mt19937 random(11);  // the same calls on every peer
    std::vector<void*> blocks;
    for (int step = 0; step < 300; ++step) {
      if (blocks.empty() || random() % 3 != 0) {
        auto made = pgas::allocate(team, "test", 1 + random() % 100'000, 16u << (random() % 6));
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        blocks.push_back(*made);
      } else {
        std::size_t victim = random() % blocks.size();
        ASSERT_TRUE(pgas::free(team, "test", blocks[victim]).is_ok());
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(victim));
      }
      std::uint64_t mine = blocks.empty() ? 0 : offset_of(team, blocks.back());
      ASSERT_TRUE(team.barrier("test", &mine, 1).is_ok());
      for (int member = 0; member < team.size(); ++member) ASSERT_EQ(team.word(member, 0), mine);
    }
  });
}

TEST_P(SymmetricMemoryTest, WhatDoesNotFitFailsOnAllAndLeavesTheHeapAsItWas) {
  run_job(GetParam(), [](Team& team) {
    auto made = pgas::allocate(team, "test", kJobHeapBytes + 1, 16);
    EXPECT_EQ(made.code(), Code::kOutOfMemory);
    EXPECT_THAT(made.status().message(), HasSubstr("SHMEM_SYMMETRIC_SIZE"));
    EXPECT_EQ(team.world().heap().allocator().bytes_in_use(), 0u);
    EXPECT_TRUE(pgas::allocate(team, "test", kJobHeapBytes, 16).is_ok());
  });
}

TEST_P(SymmetricMemoryTest, ReallocKeepsTheContentsInPlaceOrMoved) {
  run_job(GetParam(), [](Team& team) {
    auto* first = static_cast<char*>(pgas::allocate(team, "test", 1000, 16).value());
    std::fill_n(first, 1000, static_cast<char>('a' + team.index()));
    auto* grown = static_cast<char*>(pgas::reallocate(team, "test", first, 5000).value());
    EXPECT_EQ(grown, first);
    void* wall = pgas::allocate(team, "test", 16, 16).value();
    auto* moved = static_cast<char*>(pgas::reallocate(team, "test", grown, 50'000).value());
    EXPECT_NE(moved, first);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(moved[i], static_cast<char>('a' + team.index()));
    EXPECT_EQ(pgas::reallocate(team, "test", moved, kJobHeapBytes).code(), Code::kOutOfMemory);
    EXPECT_EQ(moved[999], static_cast<char>('a' + team.index()));
    EXPECT_TRUE(pgas::free(team, "test", moved).is_ok());
    EXPECT_TRUE(pgas::free(team, "test", wall).is_ok());
    EXPECT_EQ(team.world().heap().allocator().bytes_in_use(), 0u);
  });
}

TEST_P(SymmetricMemoryTest, WhatWasNotAllocatedCannotBeFreed) {
  run_job(GetParam(), [](Team& team) {
    auto* block = static_cast<std::byte*>(pgas::allocate(team, "test", 100, 16).value());
    EXPECT_EQ(pgas::free(team, "test", block + 16).code(), Code::kInvalidArgument);
    EXPECT_EQ(pgas::reallocate(team, "test", block + 16, 10).code(), Code::kInvalidArgument);
    EXPECT_TRUE(pgas::free(team, "test", block).is_ok());
    EXPECT_EQ(pgas::free(team, "test", block).code(), Code::kInvalidArgument);
  });
}

TEST(AsymmetricCallTest, NamesBothSides) {
  run_job(2, false, [](Team& team) {
    auto made = pgas::allocate(team, "test", team.index() == 0 ? 100 : 200, 16);
    EXPECT_EQ(made.code(), Code::kInvalidArgument);
    EXPECT_THAT(made.status().message(),
                HasSubstr(team.index() == 0 ? "the size is 100 here and 200 on PE 1"
                                            : "the size is 200 here and 100 on PE 0"));
  });
}

TEST(MemoryShortageTest, IsNoticedBeforeAnyMemoryIsTaken) {
  setenv("MEMSPAN_MEMORY_LIMIT", "40m", 1);  // one heap of 32 MiB fits, two full ones do not
  run_job(2, false, [](Team& team) {
    auto made = pgas::allocate(team, "test", 30 << 20, 16);
    EXPECT_EQ(made.code(), Code::kOutOfMemory);
    EXPECT_EQ(team.world().heap().allocator().bytes_in_use(), 0u);
    if (team.index() == 0) {
      EXPECT_THAT(made.status().message(), HasSubstr("60 MiB more is needed (30 MiB for each PE)"));
      EXPECT_THAT(made.status().message(), HasSubstr("40 MiB is available (MEMSPAN_MEMORY_LIMIT)"));
    }
    EXPECT_TRUE(pgas::allocate(team, "test", 10 << 20, 16).is_ok());
  });
  unsetenv("MEMSPAN_MEMORY_LIMIT");
}

}  // namespace
}  // namespace memspan
