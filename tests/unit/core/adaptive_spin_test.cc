// SPDX-License-Identifier: Apache-2.0
#include "core/adaptive_spin.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

constexpr auto kNever = [] { return false; };

// How many calls from now do not look before one does.
int calls_without_a_look(AdaptiveSpin& spin) {
  bool has_looked = false;
  int calls = 0;
  while (true) {
    spin.wait([&] {
      has_looked = true;
      return false;
    });
    if (has_looked) return calls;
    ++calls;
  }
}

// How many waits from now do not spin before one does.
int waits_without_a_spin(SpinHabit& habit) {
  int waits = 0;
  while (!habit.spins_now()) ++waits;
  return waits;
}

TEST(SpinHabitTest, SpinsInVainAreForgivenUntilThereAreAsManyAsItsPatience) {
  SpinHabit habit(4, 100);
  for (int i = 0; i < 3; ++i) habit.spun_in_vain();
  EXPECT_TRUE(habit.goes_well());
  EXPECT_EQ(waits_without_a_spin(habit), 0);
  habit.spun_in_vain();
  EXPECT_FALSE(habit.goes_well());
  EXPECT_EQ(waits_without_a_spin(habit), 1);
}

TEST(SpinHabitTest, TriesInVainBecomeRare) {
  SpinHabit habit(1, 100);
  for (const int waits : {1, 2, 4, 8, 16, 32, 64, 100, 100}) {
    habit.spun_in_vain();
    EXPECT_EQ(waits_without_a_spin(habit), waits);
  }
}

TEST(SpinHabitTest, OneThatWentWellMakesAllSpin) {
  SpinHabit habit(4, 100);
  for (int i = 0; i < 9; ++i) habit.spun_in_vain();
  waits_without_a_spin(habit);
  habit.spun_well();
  EXPECT_TRUE(habit.goes_well());
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(habit.spins_now());
}

TEST(AdaptiveSpinTest, LooksUntilItIsThere) {
  AdaptiveSpin spin(true);
  int looks = 0;
  EXPECT_TRUE(spin.wait([&] { return ++looks == 3; }));
  EXPECT_EQ(looks, 3);
}

TEST(AdaptiveSpinTest, LooksForItsTimeOnly) {
  AdaptiveSpin spin(true);
  const auto begin = Clock::now();
  EXPECT_FALSE(spin.wait(kNever));
  EXPECT_GE(Clock::now() - begin, AdaptiveSpin::kLimit);
}

TEST(AdaptiveSpinTest, LooksLessOftenWithEachLookInVain) {
  AdaptiveSpin spin(true);
  EXPECT_EQ(calls_without_a_look(spin), 0);
  EXPECT_EQ(calls_without_a_look(spin), 1);
  EXPECT_EQ(calls_without_a_look(spin), 2);
  EXPECT_EQ(calls_without_a_look(spin), 4);
  for (int i = 0; i < 10; ++i) calls_without_a_look(spin);
  EXPECT_EQ(calls_without_a_look(spin), AdaptiveSpin::kMostSkipped);
}

TEST(AdaptiveSpinTest, LooksEachTimeAfterASuccess) {
  AdaptiveSpin spin(true);
  for (int i = 0; i < 4; ++i) calls_without_a_look(spin);
  while (!spin.wait([] { return true; })) {
  }
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(spin.wait([] { return true; }));
  EXPECT_EQ(calls_without_a_look(spin), 0);
  EXPECT_EQ(calls_without_a_look(spin), 1);
}

TEST(AdaptiveSpinTest, NeverLooksWhereThereIsOneCore) {
  AdaptiveSpin spin(false);
  EXPECT_FALSE(spin.wait([] { return true; }));
}

}  // namespace
}  // namespace memspan
