// SPDX-License-Identifier: Apache-2.0
#include "node/spin_budget.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

// How many waits from now on do not spin before one does.
int waits_until_try(SpinBudget& budget) {
  int waits = 0;
  while (budget.next() == Duration::zero()) ++waits;
  return waits;
}

TEST(SpinBudgetTest, DoesNotSpinAtFirstButTries) {
  SpinBudget budget;
  EXPECT_EQ(waits_until_try(budget), SpinBudget::kOftenest - 1);
}

TEST(SpinBudgetTest, TriesInVainBecomeRare) {
  SpinBudget budget;
  int before = waits_until_try(budget);
  for (int i = 0; i < 20; ++i) {
    budget.spun_in_vain();
    const int waits = waits_until_try(budget);
    EXPECT_GE(waits, before);
    EXPECT_LT(waits, static_cast<int>(SpinBudget::kRarest));
    before = waits;
  }
  EXPECT_EQ(before, SpinBudget::kRarest - 1);
}

TEST(SpinBudgetTest, SpinsOnceATryWentWell) {
  SpinBudget budget;
  waits_until_try(budget);
  budget.spun_well();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(budget.next(), SpinBudget::kSpin);
}

TEST(SpinBudgetTest, SomeInVainAreForgivenAndMoreAreNot) {
  SpinBudget budget;
  budget.spun_well();
  for (int i = 1; i < SpinBudget::kVainSpins; ++i) budget.spun_in_vain();
  EXPECT_EQ(budget.next(), SpinBudget::kSpin);
  budget.spun_well();
  for (int i = 1; i <= SpinBudget::kVainSpins; ++i) budget.spun_in_vain();
  EXPECT_EQ(budget.next(), Duration::zero());
  EXPECT_EQ(waits_until_try(budget), SpinBudget::kOftenest - 2);
}

}  // namespace
}  // namespace memspan
