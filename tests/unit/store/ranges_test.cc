// SPDX-License-Identifier: Apache-2.0
// What the claims of ranges consist of. The claims themselves are in tests/contract/store.
#include "store/recipes/ranges.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr RangeBounds kBounds{.begin = kGiB, .end = 10 * kGiB, .step = kGiB};

NamedRange range(std::uint64_t base, std::uint64_t bytes) {
  return {.base = base, .bytes = bytes, .name = "bm/1", .layout = "some"};
}

TEST(NamedRangeTest, ReadsWhatItWrites) {
  NamedRange written = range(kGiB, 5);
  for (const auto state : {NamedRange::State::kTentative, NamedRange::State::kConfirmed,
                           NamedRange::State::kDropping}) {
    written.state = state;
    ++written.mark;
    auto read = NamedRange::decode(kGiB, written.encode());
    ASSERT_TRUE(read.is_ok());
    EXPECT_EQ(*read, written);
  }
}

TEST(NamedRangeTest, RefusesWhatIsNoRange) {
  const std::string text = range(kGiB, 5).encode();
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    EXPECT_FALSE(NamedRange::decode(0, text.substr(0, bytes)).is_ok()) << bytes;
  EXPECT_FALSE(NamedRange::decode(0, text + "x").is_ok());
  EXPECT_FALSE(NamedRange::decode(0, "\x03" + text.substr(1)).is_ok());
}

TEST(NamedRangeTest, FindsTheFirstGap) {
  EXPECT_EQ(find_gap({}, 100, kGiB, kBounds), kGiB);
  const std::vector<NamedRange> ranges{range(5 * kGiB, 2 * kGiB), range(1 * kGiB, 100),
                                       range(2 * kGiB, kGiB)};
  EXPECT_EQ(find_gap(ranges, kGiB, kGiB, kBounds), 3 * kGiB);
  EXPECT_EQ(find_gap(ranges, 2 * kGiB, kGiB, kBounds), 3 * kGiB);
  EXPECT_EQ(find_gap(ranges, 2 * kGiB + 1, kGiB, kBounds), 7 * kGiB);
  EXPECT_EQ(find_gap(ranges, 3 * kGiB, kGiB, kBounds), 7 * kGiB);
}

TEST(NamedRangeTest, FindsNoGapBeyondTheEnd) {
  const std::vector<NamedRange> ranges{range(kGiB, 9 * kGiB)};
  EXPECT_EQ(find_gap(ranges, 1, kGiB, kBounds), 0U);
  EXPECT_EQ(find_gap({}, 9 * kGiB + 1, kGiB, kBounds), 0U);
  EXPECT_EQ(find_gap({}, 9 * kGiB, kGiB, kBounds), kGiB);
  EXPECT_EQ(find_gap({}, UINT64_MAX, kGiB, kBounds), 0U);
}

}  // namespace
}  // namespace memspan
