// SPDX-License-Identifier: Apache-2.0
#include "world/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace memspan {
namespace {

TEST(LaunchTest, ReadsBackWhatItWrote) {
  Launch launch = Launch::decode(Launch{3, 8, 10, 11, 12}.encode()).value();
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.segment, 10);
  EXPECT_EQ(launch.heap, 11);
  EXPECT_EQ(launch.store, 12);
  EXPECT_TRUE(launch.nodes().is_one());
}

TEST(LaunchTest, TellsWhichRankIsOnWhichSimulatedHost) {
  const Launch launch = Launch::decode(Launch{3, 4, 10, 11, 12, {3, 1}}.encode()).value();
  const NodeMap nodes = launch.nodes();
  EXPECT_EQ(nodes.count(), 2);
  EXPECT_EQ(nodes.peers_in(0), 3);
  EXPECT_EQ(nodes.index_of(3), 0);
  EXPECT_EQ(nodes.host_of(3), simulated_host(1));
}

TEST(LaunchTest, TellsWhichRankIsOnWhichHostOfANetwork) {
  const Launch written{3, 4, 10, 11, 12, {3, 1}, {"a", "fe80::1"}, "tcp://[fe80::1]:77"};
  const Launch launch = Launch::decode(written.encode()).value();
  EXPECT_TRUE(launch.is_network());
  EXPECT_EQ(launch.nodes().host_of(2), "a");
  EXPECT_EQ(launch.nodes().host_of(3), "fe80::1");
  EXPECT_EQ(launch.store_url, "tcp://[fe80::1]:77");
}

TEST(LaunchTest, RefusesAnythingElse) {
  for (const char* text :
       {"", "2", "2:0:1:3:4", "2:0:1:3:4:5", "1:0:1:3:4:5:", "2:1:1:3:4:5:", "2:-1:1:3:4:5:",
        "2:0:x:3:4:5:", "2:0:1:3:4:5:6", "2:0:2:3:4:5:1", "2:0:2:3:4:5:1+", "2:0:2:3:4:5:1+0",
        "2:0:2:3:4:5:2+0", "2:0:2:3:4:5:1+1+1", "2:0:2:3:4:5:1+1:", "2:0:2:3:4:5:1+1|a,b",
        "2:0:2:3:4:5:1+1|a|url", "2:0:2:3:4:5:|a|url"})
    EXPECT_EQ(Launch::decode(text).code(), Code::kInvalidArgument) << text;
}

TEST(LaunchTest, IsAbsentWithoutTheVariable) {
  unsetenv(kLaunchVariable);
  EXPECT_FALSE(Launch::from_environment().value().has_value());
  setenv(kLaunchVariable, "nonsense", 1);
  EXPECT_EQ(Launch::from_environment().code(), Code::kInvalidArgument);
  unsetenv(kLaunchVariable);
}

}  // namespace
}  // namespace memspan
