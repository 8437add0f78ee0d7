// SPDX-License-Identifier: Apache-2.0
#include "memory/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::ElementsAre;

std::vector<std::string> folders(std::string_view text, std::string_view controller) {
  std::vector<std::string> all;
  for (const ControlGroup& group : control_groups(text, controller))
    all.push_back((group.is_v1 ? "1 " : "2 ") + group.folder);
  return all;
}

TEST(ControlGroupsTest, AreTheOwnOneAndAllAbove) {
  EXPECT_THAT(folders("0::/a/b\n", "memory"),
              ElementsAre("2 /sys/fs/cgroup/a/b", "2 /sys/fs/cgroup/a", "2 /sys/fs/cgroup"));
  EXPECT_THAT(folders("0::/\n", "cpu"), ElementsAre("2 /sys/fs/cgroup"));
}

TEST(ControlGroupsTest, OfTheFirstVersionAreTheControllers) {
  constexpr std::string_view kText = "5:cpuset:/x\n4:cpu,cpuacct:/a\n3:memory:/\n0::/s\n";
  EXPECT_THAT(folders(kText, "cpu"), ElementsAre("1 /sys/fs/cgroup/cpu/a", "1 /sys/fs/cgroup/cpu",
                                                 "2 /sys/fs/cgroup/s", "2 /sys/fs/cgroup"));
  EXPECT_THAT(folders(kText, "memory"),
              ElementsAre("1 /sys/fs/cgroup/memory", "2 /sys/fs/cgroup/s", "2 /sys/fs/cgroup"));
}

TEST(ControlGroupsTest, WhatIsNoLineOfThemIsNone) {
  for (const char* text : {"", "\n", "x", ":", "::", "0::", "4:cpu", "4:cpu:a"})
    EXPECT_THAT(folders(text, "cpu"), ElementsAre()) << text;
}

}  // namespace
}  // namespace memspan
