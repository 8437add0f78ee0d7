// SPDX-License-Identifier: Apache-2.0
// What the claims of ranges consist of. The claims themselves are in tests/contract/store.
#include "store/recipes/ranges.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr RangeBounds kBounds{.begin = kGiB, .end = 10 * kGiB, .step = kGiB};

NamedRange range(std::uint64_t bytes) {
  return {.bytes = bytes, .name = "bm/1", .layout = "some"};
}

TEST(NamedRangeTest, ReadsWhatItWrites) {
  NamedRange written = range(5);
  written.mark = 7;
  auto read = decode_record<NamedRange>(encode_record(written), "range");
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(*read, written);
}

TEST(NamedRangeTest, RefusesWhatIsNoRange) {
  const std::string text = encode_record(range(5));
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    EXPECT_FALSE(decode_record<NamedRange>(text.substr(0, bytes), "range").is_ok()) << bytes;
  EXPECT_FALSE(decode_record<NamedRange>(text + "x", "range").is_ok());
}

TEST(NamedRangeTest, FindsTheFirstGap) {
  EXPECT_EQ(find_gap({}, 100, kGiB, kBounds), kGiB);
  const NamedRanges ranges{
      {1 * kGiB, range(100)}, {2 * kGiB, range(kGiB)}, {5 * kGiB, range(2 * kGiB)}};
  EXPECT_EQ(find_gap(ranges, kGiB, kGiB, kBounds), 3 * kGiB);
  EXPECT_EQ(find_gap(ranges, 2 * kGiB, kGiB, kBounds), 3 * kGiB);
  EXPECT_EQ(find_gap(ranges, 2 * kGiB + 1, kGiB, kBounds), 7 * kGiB);
  EXPECT_EQ(find_gap(ranges, 3 * kGiB, kGiB, kBounds), 7 * kGiB);
}

TEST(NamedRangeTest, FindsNoGapBeyondTheEnd) {
  const NamedRanges ranges{{kGiB, range(9 * kGiB)}};
  EXPECT_EQ(find_gap(ranges, 1, kGiB, kBounds), 0U);
  EXPECT_EQ(find_gap({}, 9 * kGiB + 1, kGiB, kBounds), 0U);
  EXPECT_EQ(find_gap({}, 9 * kGiB, kGiB, kBounds), kGiB);
  EXPECT_EQ(find_gap({}, UINT64_MAX, kGiB, kBounds), 0U);
}

}  // namespace
}  // namespace memspan
