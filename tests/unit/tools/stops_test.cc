// SPDX-License-Identifier: Apache-2.0
#include "launcher/stops.h"

#include <gtest/gtest.h>

#include <csignal>

namespace memspan::launcher {
namespace {

using Tense = Stops::Tense;

TEST(StopsTest, NamesPesBySignal) {
  Stops stops;
  EXPECT_EQ(stops.clause(Tense::kPresent), "");
  for (const int rank : {0, 1, 3}) stops.note({rank, SIGTTIN});
  stops.note({2, SIGSTOP});
  EXPECT_EQ(stops.clause(Tense::kPast),
            "; PE 2 was stopped by SIGSTOP; PE 0-1, 3 were stopped by SIGTTIN");
  stops.note({2, SIGTTOU});
  for (const int rank : {1, 3}) stops.note({rank, 0});
  EXPECT_EQ(stops.clause(Tense::kPresent),
            "; PE 0 is stopped by SIGTTIN; PE 2 is stopped by SIGTTOU");
}

TEST(StopsTest, ControlZNeedsNoLine) {
  Stops stops;
  stops.note({0, SIGTSTP});
  EXPECT_FALSE(stops.is_empty());
  EXPECT_TRUE(stops.deadline().is_never());
  stops.note({1, SIGTTOU});
  EXPECT_FALSE(stops.deadline().is_never());
}

}  // namespace
}  // namespace memspan::launcher
