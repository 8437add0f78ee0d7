// SPDX-License-Identifier: Apache-2.0
#include "memory/static_segment.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <thread>

#include "memory/address_plan.h"
#include "support/needs.h"

namespace memspan {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;
alignas(65536) volatile std::uint64_t variables[kBytes / sizeof(std::uint64_t)];
constexpr std::size_t kWritten = kBytes / sizeof(std::uint64_t) / 2;
alignas(65536) volatile std::uint64_t of_file[kBytes / sizeof(std::uint64_t)] = {7, 8, 9};

// Whether /proc/self/maps has a file for the address.
bool is_of_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && begin <= wanted && wanted < end)
      return line.find('/') != std::string::npos;
  }
  return false;
}

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

TEST(StaticSegmentTest, PagesOfTheFileKeepTheirBytes) {
  MEMSPAN_NEEDS("userfaultfd");
  if (&__tsan_init != nullptr) GTEST_SKIP() << "does not apply: TSan keeps the pages";
  auto* const begin = const_cast<std::uint64_t*>(of_file);
  of_file[5] = 1;
  of_file[kWritten] = 2;
  StaticSegment data{reinterpret_cast<std::byte*>(begin), kBytes, kBytes, 1};
  EXPECT_TRUE(is_of_file(begin));
  prepare_static_segment(data);
  EXPECT_EQ(data.file_bytes, 0u);
  EXPECT_FALSE(is_of_file(begin));
  const std::map<std::size_t, std::uint64_t> expected = {
      {0, 7}, {1, 8}, {2, 9}, {5, 1}, {kWritten, 2}};
  for (std::size_t i = 0; i < kBytes / sizeof(std::uint64_t); ++i)
    ASSERT_EQ(of_file[i], expected.contains(i) ? expected.at(i) : 0) << i;
}

}  // namespace
}  // namespace memspan
