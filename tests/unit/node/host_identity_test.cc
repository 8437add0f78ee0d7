// SPDX-License-Identifier: Apache-2.0
#include "core/environment.h"
#include "net/own_addresses.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace memspan {
namespace {

TEST(HostIdentityTest, IsTheKernelsUnlessItIsGiven) {
  ::unsetenv("MEMSPAN_HOST_ID");
  EXPECT_EQ(Host::own().id, kernel_identity());
  EXPECT_TRUE(Host::own().name.starts_with(host_name()));
  ::setenv("MEMSPAN_HOST_ID", "sim-1", 1);
  EXPECT_EQ(Host::own().id, "sim-1");
  EXPECT_EQ(Host::own().name, "sim-1");
  ::unsetenv("MEMSPAN_HOST_ID");
}

TEST(HostIdentityTest, IsReadAsItWasWritten) {
  const Host host{"f00d:1", "b"};
  EXPECT_EQ(Host::decode(host.encode()), host);
  EXPECT_EQ(Host::decode(host.encode()).name, "b");
  EXPECT_EQ(Host::decode("sim-1").name, "sim-1");
  EXPECT_EQ(Host::decode("").id, "");
}

// Containers on one host may have one network and different names.
TEST(HostIdentityTest, HostsOfOneIdAreOne) {
  EXPECT_EQ((Host{"f00d:1", "b"}), (Host{"f00d:1", "c"}));
  EXPECT_FALSE((Host{"f00d:1", "b"}) == (Host{"f00d:2", "b"}));
}

}  // namespace
}  // namespace memspan
