// SPDX-License-Identifier: Apache-2.0
// Calls between members of different hosts: answers, and peers that end meanwhile.
#include "fabric/remote_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

namespace memspan {
namespace {

using testing::HasSubstr;

constexpr auto kLong = std::chrono::seconds(30);

struct Side {
  MemberIdentity self;
  Services services = {};
  std::unique_ptr<RemoteAccess> access = {};

  explicit Side(std::uint64_t session)
      : self{
            .session = session, .process = 1, .host = Host::decode("h" + std::to_string(session))} {
    start();
  }
  void start() { access = RemoteAccess::create(services, self, CarrierOptions{}).value(); }
};

std::shared_ptr<RemotePeer> connect(Side& from, const Side& to) {
  return from.access->connect(to.self, to.access->address()).value();
}

TEST(RemoteAccessTest, ACallIsAnswered) {
  Side a(1), b(2);
  b.services.add("echo", [](std::string_view text) { return std::string(text); });
  const auto peer = connect(a, b);
  EXPECT_EQ(peer->call("echo", "hello", Deadline::after(kLong)).value(), "hello");
  EXPECT_EQ(peer->call("other", "", Deadline::after(kLong)).code(), Code::kNotFound);
  EXPECT_FALSE(peer->is_lost());
}

TEST(RemoteAccessTest, APeerThatEndsAnswersWhatItIsDoing) {
  Side a(1), b(2);
  std::promise<void> called, ending;
  b.services.add("work", [&](std::string_view) {
    called.set_value();
    ending.get_future().wait();
    return std::string("done");
  });
  const auto peer = connect(a, b);
  auto answer = std::async(std::launch::async,
                           [&] { return peer->call("work", "", Deadline::after(kLong)); });
  called.get_future().wait();
  auto end = std::async(std::launch::async, [&] { b.access.reset(); });
  ending.set_value();
  const auto got = answer.get();
  ASSERT_TRUE(got.is_ok()) << got.status().to_string();
  EXPECT_EQ(*got, "done");
}

// The peer handles only the greeting.
TEST(RemoteAccessTest, ACallToAPeerThatLeavesEnds) {
  ASSERT_EQ(::setenv("MEMSPAN_FAULTS", "silent-after=1", 1), 0);
  Side b(2);
  ASSERT_EQ(::unsetenv("MEMSPAN_FAULTS"), 0);
  Side a(1);
  const auto peer = connect(a, b);
  ASSERT_TRUE(peer->link().send({0}, {}, Deadline::never()).is_ok());  // there is a connection
  std::promise<void> begun;
  auto answer = std::async(std::launch::async, [&] {
    begun.set_value();
    return peer->call("any", "", Deadline::after(kLong));
  });
  begun.get_future().wait();
  const auto before = Clock::now();
  b.access.reset();
  const auto got = answer.get();
  // The latter when the peer had left before the request was sent.
  EXPECT_THAT(got.code(), testing::AnyOf(Code::kNotFound, Code::kPeerLost));
  EXPECT_THAT(got.status().message(), HasSubstr("process 1 on host h2"));
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(10));
  EXPECT_TRUE(peer->is_lost());
}

TEST(RemoteAccessTest, APeerWhoseLinkHasEndedIsConnectedAnew) {
  Side a(1), b(2);
  b.services.add("echo", [](std::string_view text) { return std::string(text); });
  const auto before = connect(a, b);
  EXPECT_TRUE(before->call("echo", "x", Deadline::after(kLong)).is_ok());
  EXPECT_EQ(connect(a, b), before);
  before->mark_lost();
  const auto after = connect(a, b);
  EXPECT_NE(after, before);
  EXPECT_EQ(after->call("echo", "y", Deadline::after(kLong)).value(), "y");
}

}  // namespace
}  // namespace memspan
