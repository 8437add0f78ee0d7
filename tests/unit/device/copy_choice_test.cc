// SPDX-License-Identifier: Apache-2.0
#include "device/host/copy_choice.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace memspan {
namespace {

using Costs = std::vector<std::uint32_t>;

// Without looks between trials.
struct CountedChoice : CopyChoice {
  explicit CountedChoice(std::uint32_t cold = 0) : CopyChoice(cold, Turns::kByCount) {}
};

unsigned count(const Costs& costs) {
  return static_cast<unsigned>(costs.size());
}

// The first trials, in which a copy costs so much each way, and the copy after them. How often each
// way was taken.
Costs first_trials(CopyChoice& choice, const Costs& costs) {
  Costs taken(costs.size());
  CopyChoice::Turn turn = choice.next(count(costs));
  for (; turn.is_rated(); turn = choice.next(count(costs))) {
    choice.rate(turn, costs[turn.way]);
    ++taken[turn.way];
  }
  return taken;
}

// The next trial, likewise.
Costs trial(CopyChoice& choice, const Costs& costs) {
  CopyChoice::Turn turn = choice.next(count(costs));
  while (!turn.is_rated()) turn = choice.next(count(costs));
  Costs taken(costs.size());
  for (; turn.is_rated(); turn = choice.next(count(costs))) {
    choice.rate(turn, costs[turn.way]);
    ++taken[turn.way];
  }
  return taken;
}

// How many copies come before the next trial, of which the last is returned by next().
std::uint32_t copies_until_trial(CopyChoice& choice, unsigned ways, CopyChoice::Turn& first) {
  std::uint32_t copies = 0;
  for (first = choice.next(ways); !first.is_rated(); first = choice.next(ways))
    if (++copies > CopyChoice::kLastGap) break;
  return copies;
}

// The trials that follow, the last of which is complete.
void trials(CopyChoice& choice, const std::vector<Costs>& costs) {
  CopyChoice::Turn turn = choice.next(count(costs[0]));
  for (const Costs& each : costs) {
    while (!turn.is_rated()) turn = choice.next(count(each));
    for (; turn.is_rated(); turn = choice.next(count(each))) choice.rate(turn, each[turn.way]);
  }
}

TEST(CopyChoiceTest, TriesEachWayAndTakesTheFastest) {
  CountedChoice choice;
  EXPECT_EQ(choice.best_cost(), 0u);
  EXPECT_EQ(first_trials(choice, {42, 40, 45}), (Costs{9, 9, 9}));
  EXPECT_EQ(choice.best(), 1u);
  EXPECT_EQ(choice.best_cost(), 40u);
  EXPECT_EQ(choice.next(3).way, 1u);
}

TEST(CopyChoiceTest, WaysThatAreFarBehindHaveOneTrialAtFirst) {
  CountedChoice choice;
  EXPECT_EQ(first_trials(choice, {51, 40, 50}), (Costs{3, 9 + 6, 9}));
  // Later trials are of all ways.
  EXPECT_EQ(trial(choice, {51, 40, 50}), (Costs{3, 3, 3}));
}

TEST(CopyChoiceTest, TheFirstDecisionRestsOnThreeTrials) {
  CountedChoice choice;
  trials(choice, {{36, 40}, {48, 41}, {49, 42}});
  EXPECT_EQ(choice.best(), 1u);
  EXPECT_EQ(choice.best_cost(), 41u);
}

TEST(CopyChoiceTest, ATrialTakesOneWayAfterTheOther) {
  CountedChoice choice;
  for (unsigned i = 0; i < CopyChoice::kTrials * 2 * CopyChoice::kTries; ++i) {
    const CopyChoice::Turn turn = choice.next(2);
    EXPECT_EQ(turn.way, i / CopyChoice::kTries % 2);
    choice.rate(turn, 50);
  }
  EXPECT_FALSE(choice.next(2).is_rated());
}

TEST(CopyChoiceTest, TrialsBecomeRare) {
  CountedChoice choice;
  std::vector<std::uint32_t> gaps;
  for (int i = 0; i < 8; ++i) {
    CopyChoice::Turn turn;
    gaps.push_back(copies_until_trial(choice, 2, turn));
    for (unsigned left = 2 * CopyChoice::kTries; left > 0; --left) {
      choice.rate(turn, 50);
      if (left > 1) turn = choice.next(2);
    }
  }
  EXPECT_EQ(gaps, (std::vector<std::uint32_t>{0, 0, 0, 512, 1024, 2048, 4096, 4096}));
}

TEST(CopyChoiceTest, TheFirstTryOfAWayDoesNotCount) {
  CountedChoice choice;
  for (unsigned i = 0; i < 2 * CopyChoice::kTries; ++i) {
    const CopyChoice::Turn turn = choice.next(2);
    choice.rate(turn, turn.way == 0 ? 20 : i == 3 ? 10 : 30);
  }
  EXPECT_EQ(choice.best(), 0u);
}

TEST(CopyChoiceTest, OneBadTrialOfThreeDoesNotCount) {
  CountedChoice choice;
  trials(choice, {{49, 40}, {49, 42}, {41, 80}});
  EXPECT_EQ(choice.best(), 1u);
  EXPECT_EQ(choice.best_cost(), 42u);
  trials(choice, {{41, 80}});
  EXPECT_EQ(choice.best(), 0u);
}

TEST(CopyChoiceTest, ALittleFasterDoesNotReplaceIt) {
  CountedChoice choice;
  trials(choice, {{1000, 1200}, {1000, 970}, {1000, 970}});
  EXPECT_EQ(choice.best(), 0u);
  trials(choice, {{1000, 960}, {1000, 960}});
  EXPECT_EQ(choice.best(), 1u);
}

TEST(CopyChoiceTest, CopiesThatSayNothingDoNotCount) {
  CountedChoice choice;
  trials(choice, {{0, 0}});
  EXPECT_EQ(choice.best_cost(), 0u);
  trials(choice, {{90, 0}});
  EXPECT_EQ(choice.best_cost(), 90u);
  trials(choice, {{0, 70}});
  EXPECT_EQ(choice.best(), 1u);
  // The first try counts if no other one does.
  CountedChoice other;
  for (unsigned i = 0; i < 2 * CopyChoice::kTries; ++i) {
    const CopyChoice::Turn turn = other.next(2);
    other.rate(turn, turn.way == 0 ? 20 : i == 3 ? 10 : 0);
  }
  EXPECT_EQ(other.best(), 1u);
}

TEST(CopyChoiceTest, ATrialThatSaysNothingIsRepeatedAtOnceButNotForever) {
  CountedChoice choice;
  unsigned tries = 0;
  for (CopyChoice::Turn turn = choice.next(2); turn.is_rated(); turn = choice.next(2)) {
    choice.rate(turn, turn.way == 0 ? 50 : 0);
    ASSERT_LT(++tries, 1000u);
  }
  EXPECT_EQ(tries, (CopyChoice::kTrials + CopyChoice::kRepeats) * 2 * CopyChoice::kTries);
  EXPECT_EQ(choice.best_cost(), 50u);
}

TEST(CopyChoiceTest, AWayThatIsManyTimesSlowerHasOneTry) {
  CountedChoice choice;
  EXPECT_EQ(first_trials(choice, {90, 361, 100}), (Costs{9 + 2 + 6, 1, 9}));
  CountedChoice other;
  EXPECT_EQ(first_trials(other, {90, 360, 100}), (Costs{9 + 6, 3, 9}));
}

TEST(CopyChoiceTest, TheFirstTrialWaitsForSoManyCopies) {
  CountedChoice choice(5);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(choice.next(2).is_rated()) << i;
  EXPECT_TRUE(choice.next(2).is_rated());
}

TEST(CopyChoiceTest, OneCopyAtATimeIsRated) {
  CountedChoice choice;
  const CopyChoice::Turn first = choice.next(2);
  EXPECT_TRUE(first.is_rated());
  EXPECT_FALSE(choice.next(2).is_rated());
  choice.rate(first, 1);
  const CopyChoice::Turn lost = choice.next(2);
  EXPECT_TRUE(lost.is_rated());
  // It takes too long: another takes its place after some hundred.
  CopyChoice::Turn other;
  for (unsigned others = 0; !other.is_rated(); other = choice.next(2)) ASSERT_LT(++others, 1000u);
  choice.rate(lost, 1);
  EXPECT_FALSE(choice.next(2).is_rated()) << "the other one still copies";
  choice.rate(other, 1);
  EXPECT_TRUE(choice.next(2).is_rated());
}

// So many copies, which cost so much each way. How many of them were rated in trials.
unsigned copy(CopyChoice& choice, unsigned copies, const Costs& costs) {
  unsigned tried = 0;
  for (unsigned i = 0; i < copies; ++i) {
    const CopyChoice::Turn turn = choice.next(count(costs));
    if (!turn.is_rated()) continue;
    if (!turn.is_look) ++tried;
    choice.rate(turn, costs[turn.way]);
  }
  return tried;
}

TEST(CopyChoiceTest, AWayThatHasBecomeSlowIsReplacedSoon) {
  CopyChoice choice;
  copy(choice, 400, {22, 19, 25});
  EXPECT_EQ(choice.best(), 1u);
  copy(choice, CopyChoice::kLookGap * (CopyChoice::kFewestSlowLooks + 1) + 3 * 3, {22, 37, 25});
  EXPECT_EQ(choice.best(), 0u);
  EXPECT_EQ(choice.best_cost(), 22u);
}

TEST(CopyChoiceTest, SlowLooksThatDoNotFollowEachOtherChangeNothing) {
  CopyChoice choice;
  first_trials(choice, {22, 20});
  unsigned looks = 0;
  for (std::uint32_t i = 0; i < CopyChoice::kFirstGap - 1; ++i) {
    const CopyChoice::Turn turn = choice.next(2);
    if (!turn.is_rated()) continue;
    EXPECT_TRUE(turn.is_look);
    EXPECT_EQ(turn.way, 1u);
    // 25 is not slow yet, and 0 says nothing.
    const std::uint32_t costs[] = {40, 40, 0, 40, 25};
    choice.rate(turn, costs[looks++ % std::size(costs)]);
  }
  EXPECT_EQ(looks, CopyChoice::kFirstGap / CopyChoice::kLookGap);
}

TEST(CopyChoiceTest, PatternsThatChangeOftenCostFewTrials) {
  CopyChoice choice;
  copy(choice, 1000, {22, 19, 25});
  unsigned tried = 0;
  unsigned copies = 0;
  for (unsigned i = 0; i < 500; ++i, copies += 400)
    tried += copy(choice, 400, i % 2 == 0 ? Costs{22, 37, 25} : Costs{30, 19, 25});
  EXPECT_LT(tried, copies / 20);
}

TEST(CopyChoiceTest, TurnsByCountDoNotDependOnCosts) {
  CountedChoice choice;
  first_trials(choice, {22, 19});
  for (std::uint32_t i = 0; i < CopyChoice::kFirstGap - 1; ++i)
    ASSERT_FALSE(choice.next(2).is_rated()) << i;
}

TEST(CopyChoiceTest, OneWayIsNeverRated) {
  CopyChoice choice;
  for (std::uint32_t call = 0; call < 2 * CopyChoice::kLastGap; ++call)
    ASSERT_FALSE(choice.next(1).is_rated());
}

TEST(CopyChoiceTest, ThreadsShareIt) {
  CopyChoice choice;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int call = 0; call < 20000; ++call) {
        const CopyChoice::Turn turn = choice.next(3);
        ASSERT_LT(turn.way, 3u);
        if (turn.is_rated()) choice.rate(turn, turn.way == 1 ? 5 : 15);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(choice.best(), 1u);
}

TEST(CopyChoiceTest, CostIsNanosecondsPerMiB) {
  EXPECT_EQ(CopyChoice::cost_of(std::chrono::microseconds(200), 2 << 20), 100'000u);
  EXPECT_EQ(CopyChoice::cost_of(Duration(0), 1 << 20), 1u);
}

}  // namespace
}  // namespace memspan
