// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace memspan {
namespace {

std::vector<std::pair<int, std::string>> lines;

TEST(LogTest, LinesGoToTheCallersFunctionFromTheLevelOn) {
  set_log_sink([](int level, const char* line) { lines.emplace_back(level, line); });
  set_log_level(LogLevel::kWarn);
  log_line(LogLevel::kInfo, "dropped");
  log_line(LogLevel::kWarn, "kept {} as it is");
  set_log_level(LogLevel::kDebug);
  log_line(LogLevel::kDebug, "kept too");
  set_log_sink(nullptr);
  EXPECT_EQ(lines,
            (std::vector<std::pair<int, std::string>>{{2, "kept {} as it is"}, {0, "kept too"}}));
}

TEST(LogTest, TheIdentityStandsInFront) {
  set_log_identity("PE 3");
  testing::internal::CaptureStderr();
  log_line(LogLevel::kError, "something happened");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "memspan: PE 3: something happened\n");
}

}  // namespace
}  // namespace memspan
