// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/endpoint_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan::transfer {
namespace {

std::string normal(std::string_view text) {
  const auto name = normal_name(text);
  return name.is_ok() ? *name : std::string(code_name(name.code()));
}

TEST(EndpointNameTest, HasOneSpelling) {
  EXPECT_EQ(normal("10.0.0.1:6000"), "10.0.0.1:6000");
  EXPECT_EQ(normal("10.0.0.1:06000"), "10.0.0.1:6000");
  EXPECT_EQ(normal("[::1]:1"), "[::1]:1");
  EXPECT_EQ(normal("[0:0:0::0001]:1"), "[::1]:1");
  EXPECT_EQ(normal("[FE80::A]:65535"), "[fe80::a]:65535");
  EXPECT_EQ(normal("fe80::a:80"), "[fe80::a]:80");
  EXPECT_EQ(normal("localhost:8000"), "localhost:8000");
  EXPECT_EQ(normal("Node-7.Rack_2.EXAMPLE:080"), "node-7.rack_2.example:80");
  EXPECT_EQ(normal("7.a1:1"), "7.a1:1");
}

TEST(EndpointNameTest, RefusesWhatIsNone) {
  for (const char* text : {"",
                           ":",
                           "10.0.0.1",
                           "10.0.0.1:",
                           "10.0.0.1:0",
                           "10.0.0.1:65536",
                           "10.0.0.1:-1",
                           "10.0.0.1:1x",
                           "10.0.0.256:1",
                           "10.0.1:1",
                           "host",
                           "host.:1",
                           ".host:1",
                           "a..b:1",
                           "-host:1",
                           "a.-b:1",
                           "host-:1",
                           "a-.b:1",
                           "host.1:1",
                           "a b:1",
                           "[host]:1",
                           "[::1]",
                           "[::1:1",
                           "::1]:1",
                           "[]:1",
                           "[10.0.0.1]:1",
                           "10.0.0.1 :1",
                           " 10.0.0.1:1",
                           "[::g]:1",
                           "10.0.0.1:4294967297"})
    EXPECT_EQ(normal(text), "INVALID_ARGUMENT") << text;
  EXPECT_EQ(normal(std::string(1000, '1') + ":1"), "INVALID_ARGUMENT");
  EXPECT_EQ(normal(std::string(254, 'a') + ":1"), "INVALID_ARGUMENT");
  EXPECT_THAT(normal_name("host:0").status().message(), testing::HasSubstr("host:0"));
}

}  // namespace
}  // namespace memspan::transfer
