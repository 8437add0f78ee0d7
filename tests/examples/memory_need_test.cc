// SPDX-License-Identifier: Apache-2.0
#include "memory_need.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace matmul {
namespace {

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

TEST(MemoryNeedTest, CountsMatricesResultsAndStaging) {
  auto need = memory_need({1024, 2048, 8192}, {ElementType::kFp16}, 2);
  ASSERT_TRUE(need.has_value());
  EXPECT_EQ(need->matrices, (1024u + 8192u) * 2048u * 2u);
  EXPECT_EQ(need->result, 1024u * 8192u * 2u);
  EXPECT_GE(need->workspace, 1024u * 8192u * 4u);
  EXPECT_GE(need->heap(), 2 * need->result + need->workspace);
  EXPECT_LT(need->total, 400 * kMebi);
}

TEST(MemoryNeedTest, ScratchStaysBoundedForDeepMatrices) {
  for (ElementType type : {ElementType::kFp16, ElementType::kInt32, ElementType::kFloat}) {
    auto need = memory_need({2000, 1 << 24, 2000}, {type}, 2);
    ASSERT_TRUE(need.has_value());
    EXPECT_LT(need->scratch, 300 * kMebi);
  }
}

TEST(MemoryNeedTest, CountsAPackedBOnlyForTheBf16Unit) {
  auto scratch = [](ElementType type, Blas blas, Bf16Unit unit) {
    return memory_need({1024, 2048, 8192}, {type, blas, unit}, 2)->scratch;
  };
  for (ElementType type : {ElementType::kFp16, ElementType::kBf16}) {
    const auto floats = scratch(type, Blas::kAuto, Bf16Unit::kNone);
    EXPECT_EQ(scratch(type, Blas::kOpenBlas, Bf16Unit::kMatrix), floats);
    EXPECT_GE(scratch(type, Blas::kAuto, Bf16Unit::kMatrix), floats + 4 * kMebi);
  }
  EXPECT_EQ(scratch(ElementType::kFp16, Blas::kAuto, Bf16Unit::kVector),
            scratch(ElementType::kFp16, Blas::kAuto, Bf16Unit::kNone));
}

TEST(MemoryNeedTest, NoticesNumbersThatOverflow) {
  std::uint64_t large = std::uint64_t{1} << 40;
  EXPECT_FALSE(memory_need({large, large, 1}, {ElementType::kFp16}, 1).has_value());
  EXPECT_FALSE(memory_need({large, 1, large}, {ElementType::kFp16}, 1).has_value());
  EXPECT_FALSE(memory_need({1, large, large}, {ElementType::kFp16}, 1).has_value());
  EXPECT_FALSE(
      memory_need({~0ull >> 1, ~0ull >> 1, ~0ull >> 1}, {ElementType::kInt32}, 64).has_value());
  EXPECT_TRUE(memory_need({1, large, 1}, {ElementType::kFp16}, 1).has_value());
}

TEST(MemoryLimitTest, TheVariableLowersIt) {
  unsetenv("MEMSPAN_MEMORY_LIMIT");
  MemoryLimit real = available_memory();
  EXPECT_GT(real.bytes, 0u);
  setenv("MEMSPAN_MEMORY_LIMIT", "1.5m", 1);
  EXPECT_EQ(available_memory().bytes, 3 * kMebi / 2);
  EXPECT_EQ(available_memory().source, "MEMSPAN_MEMORY_LIMIT");
  EXPECT_EQ(total_memory(), 3 * kMebi / 2);
  unsetenv("MEMSPAN_MEMORY_LIMIT");
}

TEST(MemorySizeTest, ReadsSuffixesAndRefusesTheRest) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("2K"), 2048u);
  EXPECT_EQ(parse_size("1.5g"), 3u << 29);
  EXPECT_FALSE(parse_size("").has_value());
  EXPECT_FALSE(parse_size("many").has_value());
  EXPECT_FALSE(parse_size("-1").has_value());
  EXPECT_FALSE(parse_size("1e300").has_value());
  EXPECT_EQ(format_size(3u << 29), "1.5 GiB");
  EXPECT_EQ(format_size(12), "12 B");
}

}  // namespace
}  // namespace matmul
