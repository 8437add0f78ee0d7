// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace memspan {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Clock::time_point kBegin = {};

TEST(LineLimitTest, FiveLinesMayComeAtOnceAndNoMore) {
  LineLimit limit;
  for (int line = 0; line < 5; ++line) EXPECT_EQ(limit.admit(kBegin), 0U);
  EXPECT_EQ(limit.admit(kBegin), std::nullopt);
  EXPECT_EQ(limit.admit(kBegin + milliseconds(6999)), std::nullopt);
}

TEST(LineLimitTest, TheNextThatIsWrittenKnowsHowManyWereNot) {
  LineLimit limit;
  for (int line = 0; line < 25; ++line) static_cast<void>(limit.admit(kBegin));
  EXPECT_EQ(limit.admit(kBegin + seconds(7)), 20U);
  EXPECT_EQ(limit.admit(kBegin + seconds(7)), 0U);
}

// The window moves with the lines: no 7 s have more than 5, wherever they begin.
TEST(LineLimitTest, NoWindowHasMore) {
  LineLimit limit;
  std::vector<Clock::time_point> written;
  for (Clock::time_point now = kBegin; now < kBegin + seconds(60); now += milliseconds(300))
    if (limit.admit(now)) written.push_back(now);
  ASSERT_GT(written.size(), 40U);
  for (std::size_t i = 5; i < written.size(); ++i)
    EXPECT_GE(written[i] - written[i - 5], seconds(7));
}

TEST(LineLimitTest, LinesThatAreRareAreAllWritten) {
  LineLimit limit;
  for (int line = 0; line < 100; ++line) EXPECT_EQ(limit.admit(kBegin + line * seconds(2)), 0U);
}

}  // namespace
}  // namespace memspan
