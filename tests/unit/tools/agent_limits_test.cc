// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent_limits.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace memspan::launcher {
namespace {

constexpr const char* kSilence = AgentLimits::kSilenceVariable;

TEST(AgentLimitsTest, SilenceIsNeverShorterThanTheUsual) {
  unsetenv(kSilence);
  EXPECT_EQ(AgentLimits::from_environment()->silence, kUsualSilence);
  setenv(kSilence, "500ms", 1);
  EXPECT_EQ(AgentLimits::from_environment()->silence, kUsualSilence);
  setenv(kSilence, "60s", 1);
  EXPECT_EQ(AgentLimits::from_environment()->silence, std::chrono::seconds(60));
  setenv(kSilence, "0s", 1);
  EXPECT_EQ(AgentLimits::from_environment()->silence, Duration::max());
  setenv(kSilence, "10", 1);
  EXPECT_EQ(AgentLimits::from_environment().code(), Code::kInvalidArgument);
  unsetenv(kSilence);
}

}  // namespace
}  // namespace memspan::launcher
