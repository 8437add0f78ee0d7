// SPDX-License-Identifier: Apache-2.0
#include "launcher/job_order.h"

#include <gtest/gtest.h>

namespace memspan::launcher {
namespace {

JobOrder sample() {
  JobOrder order;
  order.options.programs = {{2, {"A=1"}, "/tmp", {"./a", "x y"}}, {1, {}, "", {"b"}}};
  order.options.label = Label::kRank;
  order.options.buffering = Buffering::kBuffered;
  order.options.binding = Binding::kNone;
  order.options.hosts = {2, 1};
  order.options.host_names = {"node1", "node2"};
  order.part = {1, "tcp://10.0.0.1:7", "secret", "node1", 8};
  order.silence = std::chrono::seconds(3);
  order.folder = "/home";
  order.environment = {"PATH=/bin", "EMPTY="};
  return order;
}

TEST(JobOrderTest, ReadsBackWhatItWrote) {
  const JobOrder order = JobOrder::decode(sample().encode()).value();
  ASSERT_EQ(order.options.programs.size(), 2u);
  EXPECT_EQ(order.options.programs[0].processes, 2);
  EXPECT_EQ(order.options.programs[0].environment, std::vector<std::string>{"A=1"});
  EXPECT_EQ(order.options.programs[0].folder, "/tmp");
  EXPECT_EQ(order.options.programs[0].command, (std::vector<std::string>{"./a", "x y"}));
  EXPECT_EQ(order.options.label, Label::kRank);
  EXPECT_EQ(order.options.buffering, Buffering::kBuffered);
  EXPECT_EQ(order.options.binding, Binding::kNone);
  EXPECT_EQ(order.options.hosts, (std::vector<int>{2, 1}));
  EXPECT_EQ(order.options.host_names, (std::vector<std::string>{"node1", "node2"}));
  EXPECT_EQ(order.part.host, 1);
  EXPECT_EQ(order.part.store_url, "tcp://10.0.0.1:7");
  EXPECT_EQ(order.part.secret, "secret");
  EXPECT_EQ(order.part.master, "node1");
  EXPECT_EQ(order.part.master_port, 8);
  EXPECT_EQ(order.silence, std::chrono::seconds(3));
  EXPECT_EQ(order.folder, "/home");
  EXPECT_EQ(order.environment, (std::vector<std::string>{"PATH=/bin", "EMPTY="}));
}

TEST(JobOrderTest, RefusesWhatIsCutOrTooLong) {
  const std::string text = sample().encode();
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    EXPECT_EQ(JobOrder::decode(text.substr(0, bytes)).code(), Code::kInvalidArgument) << bytes;
  EXPECT_EQ(JobOrder::decode(text + "x").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace memspan::launcher
