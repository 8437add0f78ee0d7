// SPDX-License-Identifier: Apache-2.0
#include "node/descriptor_broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <future>

#include "core/pages.h"
#include "net/unix_socket.h"
#include "support/must.h"

namespace memspan {
namespace {

using testing::HasSubstr;

std::unique_ptr<DescriptorBroker> open_broker() {
  return must(DescriptorBroker::open());
}

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

std::vector<Fd> none() {
  return {};
}

Result<FetchedDescriptors> ask(DescriptorBroker& from, const std::string& address,
                               std::string_view name) {
  return from.fetch_and_wait(address, name, soon());
}

std::vector<Fd> some_pages(std::size_t bytes) {
  auto pages = Pages::create(bytes, "broker-test");
  std::vector<Fd> descriptors;
  descriptors.emplace_back(dup(pages->descriptor()));
  return descriptors;
}

TEST(DescriptorBrokerTest, GivesWhatItOffers) {
  auto mine = open_broker();
  auto other = open_broker();
  ASSERT_TRUE(other->publish("slice/3", some_pages(3 * page_size())).is_ok());
  auto answer = ask(*mine, other->address(), "slice/3");
  ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
  EXPECT_EQ(answer->pid, getpid());
  ASSERT_EQ(answer->descriptors.size(), 1u);
  auto pages = Pages::adopt(std::move(answer->descriptors[0]));
  ASSERT_TRUE(pages.is_ok());
  EXPECT_EQ(pages->bytes(), 3 * page_size());
}

TEST(DescriptorBrokerTest, GivesTheLatestOffer) {
  auto broker = open_broker();
  ASSERT_TRUE(broker->publish("it", some_pages(page_size())).is_ok());
  ASSERT_TRUE(broker->publish("it", none()).is_ok());
  auto answer = ask(*broker, broker->address(), "it");
  ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
  EXPECT_TRUE(answer->descriptors.empty());
  broker->retract("it");
  EXPECT_EQ(ask(*broker, broker->address(), "it").code(), Code::kNotFound);
}

TEST(DescriptorBrokerTest, RefusesAnOfferThatNoMessageCarries) {
  auto broker = open_broker();
  std::vector<Fd> eight(8);
  EXPECT_EQ(broker->publish("it", std::move(eight)).code(), Code::kInvalidArgument);
}

TEST(DescriptorBrokerTest, GivesNothingWithoutTheNonce) {
  auto mine = open_broker();
  auto other = open_broker();
  ASSERT_TRUE(other->publish("it", none()).is_ok());
  const std::string name = other->address().substr(0, other->address().find(' '));
  EXPECT_EQ(ask(*mine, name + " 00000000000000000000000000000000", "it").code(),
            Code::kUnavailable);
  EXPECT_EQ(ask(*mine, name, "it").code(), Code::kUnavailable);
}

TEST(DescriptorBrokerTest, SaysThatABrokerIsGone) {
  auto mine = open_broker();
  auto other = open_broker();
  const std::string address = other->address();
  other.reset();
  EXPECT_EQ(ask(*mine, address, "it").code(), Code::kUnavailable);
}

// A listener that accepts nobody: its backlog fills up, and questions wait there.
TEST(DescriptorBrokerTest, WaitsForNobodyThatIsStuck) {
  auto mine = open_broker();
  auto other = open_broker();
  ASSERT_TRUE(other->publish("it", none()).is_ok());
  const std::string name = "memspan-test-" + std::to_string(getpid());
  auto stuck = unix_listen(name);
  ASSERT_TRUE(stuck.is_ok());
  std::vector<std::uint64_t> questions;
  for (int i = 0; i < 300; ++i)
    questions.push_back(mine->fetch(name + " nonce", "it",
                                    [](const Result<FetchedDescriptors>&) { ADD_FAILURE(); }));
  EXPECT_TRUE(ask(*mine, other->address(), "it").is_ok());
  EXPECT_EQ(
      mine->fetch_and_wait(name + " nonce", "it", Deadline::after(std::chrono::milliseconds(20)))
          .code(),
      Code::kTimeout);
  for (const auto question : questions) mine->forget(question);
}

// On an open channel there is no cookie: both sides look at who the other is.
TEST(DescriptorBrokerTest, OnAnOpenChannelOnlyTheNamedProcessesAreServed) {
  auto mine = open_broker();
  auto other = open_broker();
  const std::string open = other->address(Channel::kOpen);
  EXPECT_EQ(open.back(), ' ') << "no cookie where others listen";
  const ProcessIdentity own = ProcessIdentity::own();
  const ProcessIdentity parent{getppid(), own.pid_namespace};
  ASSERT_TRUE(
      other->publish("it", none(), {.channel = Channel::kOpen, .processes = {parent}}).is_ok());
  EXPECT_EQ(ask(*mine, open, "it").code(), Code::kUnavailable);
  ASSERT_TRUE(other->publish("it", none(), {.channel = Channel::kOpen, .processes = {parent, own}})
                  .is_ok());
  EXPECT_TRUE(ask(*mine, open, "it").is_ok());
  EXPECT_TRUE(mine->fetch_and_wait(open, "it", soon(), own).is_ok());
  EXPECT_EQ(mine->fetch_and_wait(open, "it", soon(), parent).code(), Code::kAuth);
  EXPECT_EQ(other->publish("nobody's", none(), {.channel = Channel::kOpen}).code(),
            Code::kInvalidArgument);
}

TEST(DescriptorBrokerTest, WithACookieTheProcessStillHasToBeTheRightOne) {
  auto mine = open_broker();
  auto other = open_broker();
  const ProcessIdentity own = ProcessIdentity::own();
  ASSERT_TRUE(
      other->publish("it", none(), {.processes = {{getppid(), own.pid_namespace}}}).is_ok());
  EXPECT_EQ(ask(*mine, other->address(), "it").code(), Code::kUnavailable);
  ASSERT_TRUE(other->publish("it", none(), {.processes = {own}}).is_ok());
  EXPECT_EQ(ask(*mine, other->address(Channel::kOpen), "it").code(), Code::kUnavailable);
  EXPECT_TRUE(ask(*mine, other->address(), "it").is_ok());
}

TEST(DescriptorBrokerTest, WhoPublishesLearnsWhoFetchedAndBothSeeTheOthersEnd) {
  auto mine = open_broker();
  auto other = open_broker();
  std::promise<Fetcher> seen;
  ASSERT_TRUE(
      other
          ->publish("it", none(),
                    {.fetched = [&](Fetcher fetcher) { seen.set_value(std::move(fetcher)); }})
          .is_ok());
  auto answer = ask(*mine, other->address(), "it");
  ASSERT_TRUE(answer.is_ok());
  Fetcher fetcher = seen.get_future().get();
  EXPECT_TRUE(fetcher.process.is_valid());
  pollfd end{answer->connection.get(), 0, 0};
  EXPECT_EQ(poll(&end, 1, 0), 0);
  fetcher.connection.reset();
  EXPECT_EQ(poll(&end, 1, 0), 1);
  EXPECT_NE(end.revents & POLLHUP, 0);
}

TEST(DescriptorBrokerTest, ACallMayForgetItself) {
  auto broker = open_broker();
  ASSERT_TRUE(broker->publish("it", none()).is_ok());
  std::promise<std::uint64_t> number;
  std::promise<void> done;
  auto known = number.get_future().share();
  number.set_value(
      broker->fetch(broker->address(), "it", [&, known](const Result<FetchedDescriptors>&) {
        broker->forget(known.get());
        done.set_value();
      }));
  done.get_future().get();
}

}  // namespace
}  // namespace memspan
