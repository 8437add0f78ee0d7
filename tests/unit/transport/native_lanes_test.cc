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

TEST(NativeLanesTest, LanesAreNamedByTheirTransport) {
  const NativeLanes both = native_lanes(
      "#\n# UCP endpoint \n#\n"
      "#                 lane[0]:  1:sysv/memory.0 md[1]   -> md[1]/sysv/sysdev[255] am am_bw#0\n"
      "#                 lane[1]:  5:rc_mlx5/mlx5_0:1.0 md[4] -> md[4]/ib/sysdev[0] rma_bw#0\n");
  EXPECT_EQ(both.shared, "sysv");
  EXPECT_EQ(both.network, "rc_mlx5");
}

TEST(NativeLanesTest, WhatIsNotKnownIsNotNative) {
  for (const char* text :
       {"", "#\n", "lane[0]", "lane[0]:", "lane[0]:  2:posix", "lane[0]: posix/memory.0",
        "2:posix/m",
        "# lane[0]:  0:tcp/lo.0 md[0]  -> md[0]/tcp/sysdev[255] am am_bw#0 keepalive wireup",
        "# lane[0]:  2:cma/memory.0 md[1] -> md[1]/cma/sysdev[255] rma_bw#0",
        "# lane[0]:  0:ud_verbs/mlx5_0:1.0 md[0] -> md[0]/ib/sysdev[0] am"}) {
    const NativeLanes none = native_lanes(text);
    EXPECT_EQ(none.shared + none.network, "") << text;
  }
}

}  // namespace
}  // namespace memspan::ucx
