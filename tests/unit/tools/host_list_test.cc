// SPDX-License-Identifier: Apache-2.0
#include "launcher/host_list.h"

#include <gtest/gtest.h>

namespace memspan::launcher {
namespace {

HostList parse(const std::string& list) {
  return parse_host_list("--hosts", list).value();
}

TEST(HostListTest, ANameHasOneSlotUnlessItSaysMore) {
  const HostList hosts = parse("node1:4,user@node2.example,[::1]:2,fe80::1");
  ASSERT_EQ(hosts.size(), 4u);
  EXPECT_EQ(hosts[0].name, "node1");
  EXPECT_EQ(hosts[0].slots, 4);
  EXPECT_EQ(hosts[1].name, "user@node2.example");
  EXPECT_EQ(hosts[1].slots, 1);
  EXPECT_EQ(hosts[2].name, "[::1]");
  EXPECT_EQ(hosts[2].slots, 2);
  EXPECT_EQ(hosts[3].name, "fe80::1");
  EXPECT_EQ(hosts[3].slots, 1);
}

TEST(HostListTest, RefusesWhatIsNoHostOrNoNumber) {
  for (const char* list : {"", "a,", "a:0", "a:x", "a:", "a:-1", "a:99999", ":2", "-a", "a b",
                           "a;b", "a$b", "a'b", "a|b"})
    EXPECT_EQ(parse_host_list("--hosts", list).code(), Code::kInvalidArgument) << list;
}

TEST(HostListTest, TheFirstHostsAreFilledFirst) {
  const HostList hosts = parse("a:2,b:2,c");
  EXPECT_EQ(place(hosts, 5).value(), (std::vector<int>{2, 2, 1}));
  EXPECT_EQ(place(hosts, 3).value(), (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(place(hosts, 6).code(), Code::kInvalidArgument);
}

TEST(HostListTest, AHostIsThereOnce) {
  EXPECT_EQ(place(parse("a,b,a"), 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(place(parse("localhost,127.0.0.1"), 1).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan::launcher
