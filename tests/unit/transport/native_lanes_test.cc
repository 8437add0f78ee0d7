// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/native_lanes.h"

#include <gtest/gtest.h>

namespace memspan::ucx {
namespace {

TEST(NativeLanesTest, TcpIsLeftOutOfAnyList) {
  EXPECT_EQ(without_tcp("^posix,sysv,cma"), "^posix,sysv,cma,tcp");
  EXPECT_EQ(without_tcp("rc,tcp,ud"), "rc,ud");
  EXPECT_EQ(without_tcp("tcp"), "");
  EXPECT_EQ(without_tcp("tcp,"), "");
  EXPECT_EQ(without_tcp("all"), "^tcp");
  EXPECT_EQ(without_tcp("tcp,all"), "^tcp");
  EXPECT_EQ(without_tcp(""), "^tcp");
}

TEST(NativeLanesTest, WhatIsNotKnownIsNotNative) {
  EXPECT_TRUE(is_native_network("rc_mlx5"));
  for (const char* other : {"", "tcp", "cma", "posix", "ud_verbs", "rc"})
    EXPECT_FALSE(is_native_network(other)) << other;
}

}  // namespace
}  // namespace memspan::ucx
