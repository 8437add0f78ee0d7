// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
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

// The clock is the real one: a standstill of the machine lets more lines through, never more than
// five at once.
TEST(LogTest, LimitedLinesOfAThreadAreFewAndOtherThreadsHaveTheirOwn) {
  const auto flood = [] {
    for (int line = 0; line < 1000; ++line) log_line_limited(LogLevel::kError, "again");
  };
  lines.clear();
  set_log_sink([](int level, const char* line) { lines.emplace_back(level, line); });
  set_log_level(LogLevel::kFatal);
  flood();
  EXPECT_TRUE(lines.empty());  // what is below the level does not count
  set_log_level(LogLevel::kWarn);
  flood();
  const std::size_t first = lines.size();
  EXPECT_GE(first, 5U);
  EXPECT_LE(first, 20U);
  EXPECT_EQ(lines.at(0), (std::pair<int, std::string>{3, "again"}));
  std::thread(flood).join();
  EXPECT_GE(lines.size(), first + 5);
  set_log_sink(nullptr);
}

TEST(LogTest, TheIdentityStandsInFront) {
  set_log_identity("PE 3");
  testing::internal::CaptureStderr();
  log_line(LogLevel::kError, "something happened");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "memspan: PE 3: something happened\n");
}

}  // namespace
}  // namespace memspan
