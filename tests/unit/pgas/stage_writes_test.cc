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

// A way whose first period begins.
MeasuredWay warm_way() {
  MeasuredWay way;
  for (std::uint32_t call = 0; call < MeasuredWay::kCold; ++call) {
    const MeasuredWay::Choice choice = way.next();
    EXPECT_FALSE(choice.is_timed || choice.is_past_caches) << call;
  }
  return way;
}

TEST(MeasuredWayTest, TriesBothAndGoesTheQuickerOne) {
  MeasuredWay way = warm_way();
  constexpr int kTried = MeasuredWay::kTimed / 2;
  constexpr int kRest = MeasuredWay::kPeriod - MeasuredWay::kTimed;
  EXPECT_EQ(past_caches_of_period(way, microseconds(9), microseconds(4)), kTried + kRest);
  EXPECT_EQ(past_caches_of_period(way, microseconds(3), microseconds(4)), kTried);
  EXPECT_EQ(past_caches_of_period(way, microseconds(9), microseconds(4)), kTried + kRest);
}

TEST(MeasuredWayTest, OneThatWasInterruptedDoesNotCount) {
  MeasuredWay way = warm_way();
  for (std::uint32_t call = 0; call < MeasuredWay::kTimed; ++call) {
    const bool is_past = way.next().is_past_caches;
    way.note(is_past, is_past ? microseconds(call == 1 ? 5000 : 4) : microseconds(9));
  }
  EXPECT_TRUE(way.next().is_past_caches);
}

TEST(StageWritesTest, WritesTheBytesEitherWay) {
  StageWrites stage;
  std::vector<char> from(100'000, 'x');
  constexpr std::uint32_t kCalls = MeasuredWay::kCold + MeasuredWay::kTimed;
  int kept = 0;
  for (std::uint32_t call = 0; call < kCalls; ++call) {
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
  EXPECT_EQ(kept, static_cast<int>(kCalls));
}

}  // namespace
}  // namespace memspan::pgas
