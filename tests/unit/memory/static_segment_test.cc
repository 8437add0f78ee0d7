// SPDX-License-Identifier: Apache-2.0
#include "memory/static_segment.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "memory/address_plan.h"
#include "support/needs.h"

namespace memspan {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;
alignas(65536) volatile std::uint64_t variables[kBytes / sizeof(std::uint64_t)];
constexpr std::size_t kWritten = kBytes / sizeof(std::uint64_t) / 2;

TEST(StaticSegmentTest, NoWriteOfAnotherThreadIsLostWhileTheVariablesMove) {
  MEMSPAN_NEEDS("userfaultfd");
  const Result<Pages> pages = Pages::create(kBytes, "test");
  ASSERT_TRUE(pages.is_ok()) << pages.status().message();
  auto* const begin = const_cast<std::uint64_t*>(variables);
  for (std::size_t i = 0; i < kWritten; ++i) begin[i] = i;
  const StaticSegment data{reinterpret_cast<std::byte*>(begin), kBytes, 0, 1};

  // Writers cannot be held off under TSan.
  const bool writes = &__tsan_init == nullptr;
  std::atomic<bool> is_over = false;
  std::uint64_t written = 0;
  std::thread writer([&] {
    for (; writes && !is_over.load(std::memory_order_relaxed); ++written)
      variables[kWritten] = variables[kWritten] + 1;
  });
  for (int round = 0; round < 200; ++round) {
    EXPECT_TRUE(move_static_segment(data, *pages, 0).is_ok());
    take_back_static_segment();
  }
  is_over = true;
  writer.join();
  EXPECT_EQ(variables[kWritten], written);
  for (std::size_t i = 0; i < kWritten; ++i) ASSERT_EQ(variables[i], i);
}

}  // namespace
}  // namespace memspan
