// SPDX-License-Identifier: Apache-2.0
#include "device/mapped_commit.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace memspan {
namespace {

TEST(HugePagesTest, TheKernelsSettingsDecideTheWay) {
  const char* const kMadvise = "always [madvise] never";
  const auto shared = [](const char* word) {
    std::string text = "always within_size advise never deny force";
    const std::size_t at = text.find(word);
    return text.insert(at + std::string(word).size(), "]").insert(at, "[");
  };
  for (const char* word : {"always", "within_size", "advise", "force"})
    EXPECT_EQ(huge_page_way(kMadvise, shared(word)), HugePageWay::kAdvice) << word;
  EXPECT_EQ(huge_page_way("always madvise [never]", shared("advise")), HugePageWay::kAdvice);
  EXPECT_EQ(huge_page_way(kMadvise, shared("never")), HugePageWay::kCollapse);
  EXPECT_EQ(huge_page_way("[always] madvise never", shared("never")), HugePageWay::kCollapse);
  EXPECT_EQ(huge_page_way("always madvise [never]", shared("never")), HugePageWay::kNone);
  EXPECT_EQ(huge_page_way(kMadvise, shared("deny")), HugePageWay::kNone);
  EXPECT_EQ(huge_page_way("", ""), HugePageWay::kNone);
  EXPECT_EQ(huge_page_way("", shared("never")), HugePageWay::kNone);
  EXPECT_EQ(huge_page_way("]never[", "]never["), HugePageWay::kNone);
}

TEST(HugePagesTest, OnlyWholeOnesOfARangeCount) {
  auto* const at = reinterpret_cast<std::byte*>(std::uintptr_t{64} * kHugePage);
  const auto expect = [](const HugeRange& range, std::size_t begin, std::size_t bytes) {
    EXPECT_EQ(range.bytes, bytes);
    if (bytes != 0) {
      EXPECT_EQ(range.at, begin);
    }
  };
  expect(huge_range(at, kHugePage), 0, kHugePage);
  expect(huge_range(at, kHugePage - 1), 0, 0);
  expect(huge_range(at + 1, kHugePage), 0, 0);
  expect(huge_range(at + 1, 2 * kHugePage - 1), kHugePage - 1, kHugePage);
  expect(huge_range(at + 4096, 4 * kHugePage), kHugePage - 4096, 3 * kHugePage);
  expect(huge_range(at, 0), 0, 0);
}

}  // namespace
}  // namespace memspan
