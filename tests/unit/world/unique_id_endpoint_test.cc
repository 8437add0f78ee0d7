// SPDX-License-Identifier: Apache-2.0
#include "world/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "net/own_addresses.h"

namespace memspan {
namespace {

using testing::HasSubstr;

constexpr const char* kVariables[] = {"SHMEM_UID_SESSION_ID", "SHMEM_UID_SOCK_IFNAME",
                                      "SHMEM_UID_SOCK_IFNAM", "MEMSPAN_NET"};

class UniqueIdEndpointTest : public testing::Test {
 protected:
  UniqueIdEndpointTest() { forget(); }
  ~UniqueIdEndpointTest() override { forget(); }
  static void forget() {
    for (const char* variable : kVariables) unsetenv(variable);
  }
  static std::string place(bool needs_secret = true) {
    return choose_unique_id_endpoint(needs_secret).value().place();
  }
  static Status refusal() { return choose_unique_id_endpoint(true).status(); }
};

TEST_F(UniqueIdEndpointTest, IsTheSessionThatIsSaid) {
  setenv("SHMEM_UID_SOCK_IFNAME", "nothing", 1);
  for (const char* text : {"10.0.0.1:8666", "[fd00::1]:8666", "host:8666"}) {
    setenv("SHMEM_UID_SESSION_ID", text, 1);
    EXPECT_EQ(place(), text);
    EXPECT_EQ(place(false), text);
  }
  for (const char* text : {"10.0.0.1", "10.0.0.1:70000", "", "fd00::1:8666"}) {
    setenv("SHMEM_UID_SESSION_ID", text, 1);
    EXPECT_EQ(refusal().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(refusal().message(), HasSubstr(std::string("SHMEM_UID_SESSION_ID is \"") + text));
  }
}

TEST_F(UniqueIdEndpointTest, IsOnTheInterfaceThatIsSaid) {
  for (const char* variable : {"SHMEM_UID_SOCK_IFNAME", "SHMEM_UID_SOCK_IFNAM"}) {
    for (const char* text : {"lo", "l", "lo:inet4"}) {
      setenv(variable, text, 1);
      EXPECT_EQ(place(), "127.0.0.1:0") << text;
    }
    for (const char* text : {"", ":inet4", "lo:", "lo:inet5"}) {
      setenv(variable, text, 1);
      EXPECT_EQ(refusal().code(), Code::kInvalidArgument) << text;
      EXPECT_THAT(refusal().message(), HasSubstr(variable));
      EXPECT_THAT(refusal().message(), HasSubstr("followed by :inet4 or :inet6"));
    }
    setenv(variable, "no-such-interface", 1);
    EXPECT_EQ(refusal().code(), Code::kUnavailable);
    EXPECT_THAT(refusal().message(), HasSubstr("\"no-such-interface\", and no interface"));
    unsetenv(variable);
  }
  setenv("MEMSPAN_NET", "lo", 1);
  EXPECT_EQ(place(), "127.0.0.1:0");
  setenv("MEMSPAN_NET", "192.0.2.7", 1);
  EXPECT_EQ(place(), "192.0.2.7:0");
}

TEST_F(UniqueIdEndpointTest, LeadsToOtherHostsWhereASecretOpensIt) {
  const auto reachable = address_of_interfaces("", AddressFamily::kAny);
  EXPECT_EQ(choose_unique_id_endpoint(true)->host, reachable.value_or("127.0.0.1"));
  EXPECT_NE(reachable.value_or("none"), "127.0.0.1");
  EXPECT_EQ(place(false), "127.0.0.1:0");
}

}  // namespace
}  // namespace memspan
