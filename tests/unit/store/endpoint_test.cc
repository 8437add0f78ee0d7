// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.h"

#include <gtest/gtest.h>

namespace memspan {
namespace {

TEST(EndpointTest, ReadsEveryAllowedForm) {
  EXPECT_EQ(*Endpoint::parse("tcp://127.0.0.1:8666"), (Endpoint{"127.0.0.1", 8666}));
  EXPECT_EQ(*Endpoint::parse("tcp://localhost:0"), (Endpoint{"localhost", 0}));
  EXPECT_EQ(*Endpoint::parse("tcp://[::1]:65535"), (Endpoint{"::1", 65535}));
  EXPECT_EQ(*Endpoint::parse("tcp6://[::1]:1"), (Endpoint{"::1", 1}));
}

TEST(EndpointTest, RefusesEverythingElseAndSaysWhatIsAllowed) {
  for (const char* text :
       {"", "127.0.0.1:1", "udp://127.0.0.1:1", "tcp://127.0.0.1", "tcp://:1",
        "tcp://host:", "tcp://host:65536", "tcp://host:-1", "tcp://host:1x", "tcp://::1:1",
        "tcp://[::1:1", "tcp://[]:1", "tcp://[[]:5", "tcp://a]:1"}) {
    auto endpoint = Endpoint::parse(text);
    ASSERT_FALSE(endpoint.is_ok()) << text;
    EXPECT_EQ(endpoint.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(endpoint.status().message().find("tcp://HOST:PORT"), std::string::npos) << text;
  }
}

TEST(EndpointTest, RefusesAHostNameThatIsTooLong) {
  EXPECT_TRUE(Endpoint::parse("tcp://" + std::string(253, 'a') + ":1").is_ok());
  EXPECT_FALSE(Endpoint::parse("tcp://" + std::string(254, 'a') + ":1").is_ok());
}

TEST(EndpointTest, WritesWhatItReads) {
  for (const char* text : {"tcp://127.0.0.1:8666", "tcp://[::1]:1", "tcp://localhost:0"})
    EXPECT_EQ(Endpoint::parse(text)->to_string(), text);
}

}  // namespace
}  // namespace memspan
