// SPDX-License-Identifier: Apache-2.0
#include "net/trusted_networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace memspan {
namespace {

using testing::HasSubstr;

TrustedNetworks parse(const char* text) {
  return TrustedNetworks::parse(text).value();
}

TEST(TrustedNetworksTest, LoopbackAlwaysIs) {
  for (const char* text : {"", "0", "10.0.0.0/8", "1"})
    for (const char* address : {"127.0.0.1", "127.3.2.1", "::1"})
      EXPECT_TRUE(parse(text).check(address, "", "").is_ok()) << text << " " << address;
}

TEST(TrustedNetworksTest, NoOtherIsUnlessItIsDeclared) {
  for (const char* address : {"10.0.0.1", "192.0.2.7", "fd00::1", "::", "128.0.0.1", "host"})
    for (const char* text : {"", "0", "172.16.0.0/12,fe80::/10"})
      EXPECT_FALSE(parse(text).contain(address)) << text << " " << address;
  const Status refused =
      parse("").check("192.0.2.7", "It is plain, so it is not used", "MEMSPAN_CARRIER to socket");
  EXPECT_EQ(refused.code(), Code::kAuth);
  EXPECT_THAT(refused.message(), HasSubstr("192.0.2.7"));
  EXPECT_THAT(refused.message(), HasSubstr("MEMSPAN_TRUSTED_FABRIC"));
  EXPECT_THAT(refused.message(), HasSubstr("MEMSPAN_CARRIER to socket"));
}

TEST(TrustedNetworksTest, OneTrustsAll) {
  EXPECT_TRUE(parse("1").are_all());
  EXPECT_TRUE(parse("1").contain("203.0.113.9"));
  EXPECT_FALSE(parse("0.0.0.0/0").are_all());
}

TEST(TrustedNetworksTest, SubnetsAreComparedByTheirBits) {
  const TrustedNetworks some = parse("10.1.0.0/16,192.0.2.128/25,fd00:1::/32,198.51.100.7");
  for (const char* address :
       {"10.1.2.3", "192.0.2.128", "192.0.2.255", "fd00:1::9", "198.51.100.7"})
    EXPECT_TRUE(some.contain(address)) << address;
  for (const char* address : {"10.2.0.1", "192.0.2.127", "fd00:2::9", "198.51.100.6"})
    EXPECT_FALSE(some.contain(address)) << address;
  EXPECT_TRUE(parse("0.0.0.0/0").contain("203.0.113.9"));
  EXPECT_FALSE(parse("0.0.0.0/0").contain("fd00::1"));
  EXPECT_TRUE(parse("::/0").contain("fd00::1"));
  EXPECT_TRUE(parse("fe80::/10").contain("fe80::1%eth0"));
  for (const char* text : {"::/0", "::/80"}) EXPECT_FALSE(parse(text).contain("10.0.0.1")) << text;
}

TEST(TrustedNetworksTest, AnythingElseIsRefused) {
  for (const char* text : {"yes", "2", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/8,", ",",
                           "10.0.0.0/", "eth0", "1,10.0.0.0/8 "}) {
    const auto parsed = TrustedNetworks::parse(text);
    EXPECT_EQ(parsed.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr("allowed are 1, 0, and subnets")) << text;
  }
}

TEST(TrustedNetworksTest, TheEnvironmentSaysIt) {
  setenv("MEMSPAN_TRUSTED_FABRIC", "192.0.2.0/24", 1);
  EXPECT_TRUE(TrustedNetworks::from_environment().value().contain("192.0.2.7"));
  unsetenv("MEMSPAN_TRUSTED_FABRIC");
  EXPECT_FALSE(TrustedNetworks::from_environment().value().contain("192.0.2.7"));
}

}  // namespace
}  // namespace memspan
