// SPDX-License-Identifier: Apache-2.0
#include "memory/budget.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace memspan {
namespace {

class BudgetTest : public testing::Test {
 protected:
  ~BudgetTest() override { unsetenv("MEMSPAN_MEMORY_LIMIT"); }
};

TEST_F(BudgetTest, ThisHostHasSomeMemoryAndSaysWhatBoundsIt) {
  MemoryBudget budget = measure_memory_budget().value();
  EXPECT_GT(budget.available, 0u);
  EXPECT_LE(budget.available, budget.total);
  EXPECT_FALSE(budget.source.empty());
}

TEST_F(BudgetTest, AChosenLimitLowersBothFigures) {
  setenv("MEMSPAN_MEMORY_LIMIT", "3m", 1);
  MemoryBudget budget = measure_memory_budget().value();
  EXPECT_EQ(budget.total, 3u << 20);
  EXPECT_EQ(budget.available, 3u << 20);
  EXPECT_EQ(budget.source, "MEMSPAN_MEMORY_LIMIT");
}

TEST_F(BudgetTest, ALimitAboveTheMachineChangesNothing) {
  setenv("MEMSPAN_MEMORY_LIMIT", "1000000t", 1);
  EXPECT_NE(measure_memory_budget().value().source, "MEMSPAN_MEMORY_LIMIT");
}

TEST_F(BudgetTest, AWrongLimitIsAnError) {
  setenv("MEMSPAN_MEMORY_LIMIT", "lots", 1);
  EXPECT_EQ(measure_memory_budget().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan
