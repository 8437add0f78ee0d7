// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/stage_writes.h"

#include <gtest/gtest.h>

#include <vector>

namespace memspan::pgas {
namespace {

using std::chrono::microseconds;

// The calls of a period, the timed ones of which take so long either way; how many went past.
int past_caches_of_period(MeasuredWay& way, Duration usual, Duration past) {
  int count = 0;
  for (std::uint32_t call = 0; call < MeasuredWay::kPeriod; ++call) {
    const MeasuredWay::Choice choice = way.next();
    EXPECT_EQ(choice.is_timed, call < MeasuredWay::kTimed) << call;
    if (choice.is_timed) way.note(choice.is_past_caches, choice.is_past_caches ? past : usual);
    count += choice.is_past_caches ? 1 : 0;
  }
  return count;
}

TEST(MeasuredWayTest, TriesBothAndGoesTheQuickerOne) {
  MeasuredWay way;
  constexpr int kTried = MeasuredWay::kTimed / 2;
  constexpr int kRest = MeasuredWay::kPeriod - MeasuredWay::kTimed;
  EXPECT_EQ(past_caches_of_period(way, microseconds(9), microseconds(4)), kTried + kRest);
  EXPECT_EQ(past_caches_of_period(way, microseconds(3), microseconds(4)), kTried);
  EXPECT_EQ(past_caches_of_period(way, microseconds(9), microseconds(4)), kTried + kRest);
}

TEST(MeasuredWayTest, OneThatWasInterruptedDoesNotCount) {
  MeasuredWay way;
  for (std::uint32_t call = 0; call < MeasuredWay::kTimed; ++call) {
    const bool is_past = way.next().is_past_caches;
    way.note(is_past, is_past ? microseconds(call == 1 ? 5000 : 4) : microseconds(9));
  }
  EXPECT_TRUE(way.next().is_past_caches);
}

TEST(StageWritesTest, WritesTheBytesEitherWay) {
  StageWrites stage;
  std::vector<char> from(100'000, 'x');
  int kept = 0;
  for (std::uint32_t call = 0; call < 2 * MeasuredWay::kTimed; ++call) {
    std::vector<char> to(from.size() + 1, 'g');
    stage.begin(2, from.size());
    stage.write(to.data(), from.data(), from.size());
    stage.write(to.data(), nullptr, 0);
    stage.order();
    stage.pause();
    stage.resume();
    stage.end();
    if (to.back() == 'g') ++kept;
    to.pop_back();
    ASSERT_EQ(to, from);
  }
  EXPECT_EQ(kept, static_cast<int>(2 * MeasuredWay::kTimed));
}

}  // namespace
}  // namespace memspan::pgas
