// SPDX-License-Identifier: Apache-2.0
// What the transport by messages promises beyond a link: order of messages, ends that are told, and
// waits that end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "contract/transport/owner_process.h"
#include "core/interrupt.h"
#include "core/mutex.h"
#include "transport/message/protocol.h"

namespace memspan::contract {
namespace {

using testing::HasSubstr;

constexpr auto kPromise = std::chrono::seconds(10);  // a machine under load

class MessageContract : public testing::TestWithParam<Backend> {
 protected:
  void start(const std::string& owner_faults = "", const std::string& own_faults = "",
             Duration silence_limit = Duration::max()) {
    owner_ = std::make_unique<OwnerProcess>(GetParam(), owner_faults);
    MessageOptions options = message_options(GetParam(), 0);
    options.faults = Faults::parse(own_faults).value();
    options.silence_limit = silence_limit;
    options.handlers.on_peer_lost = [this](int peer, const Status& why) {
      MutexLock lock(mutex_);
      lost_ += std::to_string(peer) + " " + why.to_string() + ";";
    };
    options.handlers.on_peer_left = [this](int peer) {
      MutexLock lock(mutex_);
      left_ += std::to_string(peer) + ";";
    };
    transport_ = MessageTransport::make(std::move(options)).value();
    link_ = transport_->connect(owner_->address());
  }
  void TearDown() override {
    link_.reset();
    transport_.reset();
    owner_.reset();
  }
  RemotePlace at(std::uint64_t offset) { return {owner_->region(), offset}; }
  Status put_word(std::uint64_t offset, std::uint64_t value) {
    return link_->put(context_, at(offset), &value, sizeof value);
  }
  Result<std::uint64_t> get_word(std::uint64_t offset) {
    std::uint64_t value = 0;
    MEMSPAN_PASS(link_->get(context_, &value, at(offset), sizeof value));
    return value;
  }
  std::string lost() {
    MutexLock lock(mutex_);
    return lost_;
  }
  std::string left() {
    MutexLock lock(mutex_);
    return left_;
  }
  // Asks until it says so, or the promised time is over.
  template <typename Ask>
  static bool comes_true(Ask ask) {
    const Deadline deadline = Deadline::after(kPromise);
    while (!ask())
      if (deadline.has_passed()) return false;
    return true;
  }

  std::unique_ptr<OwnerProcess> owner_;
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<Link> link_;
  OperationContext context_;
  Mutex mutex_;
  std::string lost_ MEMSPAN_GUARDED_BY(mutex_);
  std::string left_ MEMSPAN_GUARDED_BY(mutex_);
};

TEST_P(MessageContract, MessagesComeInOrderAfterThePutsBeforeThem) {
  start();
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(put_word(0, i).is_ok());
    const std::string text = "m" + std::to_string(i);
    ASSERT_TRUE(
        link_->send({i, i + 1, ~i}, std::as_bytes(std::span(text)), Deadline::never()).is_ok());
  }
  ASSERT_TRUE(context_.quiet().is_ok());
  std::string expected;
  for (std::uint64_t i = 0; i < 100; ++i)
    expected += "0:" + std::to_string(i) + "." + std::to_string(i + 1) + "." + std::to_string(~i) +
                ":m" + std::to_string(i) + ";";
  ASSERT_TRUE(link_->quiet(context_).is_ok());
  EXPECT_EQ(owner_->ask("messages"), expected + "|");
  EXPECT_NE(owner_->ask("applied"), "0");
  const std::vector<std::byte> large(kMostMessage + 1);
  EXPECT_EQ(link_->send({}, large, Deadline::never()).code(), Code::kInvalidArgument);
  ASSERT_TRUE(link_->send({}, std::span(large).first(kMostMessage), Deadline::never()).is_ok());
  ASSERT_TRUE(link_->quiet(context_).is_ok());
}

TEST_P(MessageContract, WhatIsPostedBeforeThereIsAConnectionComesInOrder) {
  start();
  std::string expected;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::string text = "m" + std::to_string(i);
    ASSERT_TRUE(link_->post({i, 0, 0}, std::as_bytes(std::span(text))).is_ok());
    expected += "0:" + std::to_string(i) + ".0.0:" + text + ";";
  }
  ASSERT_TRUE(link_->quiet(context_).is_ok());
  EXPECT_EQ(owner_->ask("messages"), expected + "|");
}

// As much as the carrier has buffers for, asked for at once, and no beats: nothing else wakes the
// owner when it has to go on sending.
TEST_P(MessageContract, AnOwnerGoesOnSendingWhatWasAskedForAtOnce) {
  start();
  context_.set_limit(kPromise);
  std::vector<char> bytes(std::size_t{1} << 20);
  for (char round = 1; round <= 100; ++round) {
    std::memset(owner_->base(), round, bytes.size());
    ASSERT_TRUE(link_->get(context_, bytes.data(), at(0), bytes.size()).is_ok()) << int{round};
    ASSERT_EQ(std::count(bytes.begin(), bytes.end(), round), std::ssize(bytes));
  }
}

// Over the connection of the message: the peer needs no connection of its own.
TEST_P(MessageContract, AnAnswerComesOverTheConnectionOfItsMessage) {
  std::unique_ptr<MessageTransport> asked;
  MessageOptions options = message_options(GetParam(), 1);
  options.handlers.on_message = [&](int peer, const MessageTag& tag, const Buffer& bytes) {
    EXPECT_TRUE(asked->post_back(peer, tag, bytes).is_ok());
    EXPECT_EQ(asked->post_back(peer + 1, tag, bytes).code(), Code::kPeerLost);
  };
  asked = MessageTransport::make(std::move(options)).value();
  std::string answers;
  std::atomic<int> count{0};
  options = message_options(GetParam(), 0);
  options.handlers.on_message = [&](int peer, const MessageTag& tag, const Buffer& bytes) {
    answers += std::to_string(peer) + "." + std::to_string(tag.kind) + ":" +
               std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + ";";
    count.fetch_add(1);
  };
  const auto asks = MessageTransport::make(std::move(options)).value();
  const auto link = asks->connect({1, "PE 1", asked->address()});
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::string text(i == 1 ? 0 : 3, 'x');
    ASSERT_TRUE(link->send({i, 0, 0}, std::as_bytes(std::span(text)), Deadline::never()).is_ok());
  }
  EXPECT_TRUE(comes_true([&] { return count.load() == 3; })) << count.load();
  EXPECT_EQ(answers, "1.0:xxx;1.1:;1.2:xxx;");
}

TEST_P(MessageContract, CallsComeInTheOrderOfTheirTimes) {
  start();
  std::atomic<int> calls{0};
  const auto now = Clock::now();
  const auto call = [&](int number, Duration after) {
    transport_->call_at(now + after, [&calls, now, number, after] {
      if (calls.load() == number && Clock::now() >= now + after) calls.store(number + 1);
    });
  };
  call(2, std::chrono::milliseconds(60));
  call(1, std::chrono::milliseconds(30));
  call(0, Duration::zero());
  EXPECT_TRUE(comes_true([&] { return calls.load() == 3; })) << calls.load();
}

// One that runs is waited for, and what it would have called later does not come.
TEST_P(MessageContract, NoHandlerBeginsAfterTheirEnd) {
  start();
  std::atomic<bool> has_begun{false};
  std::atomic<int> calls{0};
  transport_->call_at(Clock::now(), [&] {
    has_begun.store(true);
    transport_->call_at(Clock::now(), [&] { calls.store(-1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    calls.store(1);
  });
  ASSERT_TRUE(comes_true([&] { return has_begun.load(); }));
  transport_->end_handlers();
  EXPECT_EQ(calls.load(), 1);
  ASSERT_TRUE(put_word(0, 7).is_ok());  // the rest works
  EXPECT_EQ(get_word(0).value(), 7u);
  EXPECT_EQ(calls.load(), 1);
}

TEST_P(MessageContract, ARetractedRegionIsStaleAndItsMemoryIsNotTouched) {
  start();
  const RemoteRegion before = owner_->small_region();
  std::uint64_t value = 5;
  ASSERT_TRUE(link_->put(context_, {before, 0}, &value, 8).is_ok());
  ASSERT_TRUE(context_.quiet().is_ok());
  ASSERT_EQ(owner_->ask("retract"), "ok");
  value = 6;
  ASSERT_TRUE(link_->put(context_, {before, 0}, &value, 8).is_ok());
  const Status refused = context_.quiet();
  EXPECT_EQ(refused.code(), Code::kStale);
  EXPECT_THAT(refused.message(), HasSubstr("PE 1 on host b refused: region 2"));
  EXPECT_TRUE(context_.quiet().is_ok()) << "it is told once";
  const RemoteRegion again = RemoteRegion::decode(owner_->ask("expose")).value();
  EXPECT_EQ(again.id.number, before.id.number);
  EXPECT_EQ(link_->get(context_, &value, {before, 0}, 8).code(), Code::kStale);
  ASSERT_TRUE(link_->get(context_, &value, {again, 0}, 8).is_ok());
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(owner_->ask("counter refused: stale region"), "2");
}

TEST_P(MessageContract, TheOwnerChecksWhatAPeerClaims) {
  start();
  RemoteRegion claimed = owner_->region();
  claimed.bytes = UINT64_MAX;
  std::uint64_t value = 1;
  EXPECT_EQ(link_->get(context_, &value, {claimed, kBytes - 4}, 8).code(), Code::kInvalidArgument);
  ASSERT_TRUE(link_->put(context_, {claimed, kBytes}, &value, 8).is_ok());
  EXPECT_EQ(context_.quiet().code(), Code::kInvalidArgument);
  EXPECT_EQ(link_->atomic(context_, {AtomicKind::kAdd, 8, 1}, {claimed, kBytes}, &value).code(),
            Code::kInvalidArgument);
  ASSERT_TRUE(
      link_->put_signal(context_, {claimed, kBytes}, &value, 8, at(64), 1, SignalOp::kAdd).is_ok());
  EXPECT_EQ(context_.quiet().code(), Code::kInvalidArgument);
  EXPECT_EQ(owner_->memory<std::uint64_t>(64), 0u) << "a refused put is not signaled";
  EXPECT_EQ(owner_->memory<std::uint64_t>(kBytes), 0u);
  EXPECT_EQ(owner_->ask("counter refused: out of bounds"), "4");
  // The failure belongs to the context that put.
  OperationContext other;
  EXPECT_TRUE(link_->put(other, at(0), &value, 8).is_ok());
  EXPECT_TRUE(other.quiet().is_ok());
}

TEST_P(MessageContract, APeerThatDiesEndsAGetThatWaitsForIt) {
  start();
  ASSERT_EQ(get_word(0).value(), 0u);
  owner_->stop();
  Status status;
  std::thread waiting([&] { status = get_word(0).status(); });
  owner_->end_by(SIGKILL);
  waiting.join();
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("PE 1 on host b: the connection was cut"));
}

TEST_P(MessageContract, ADeadPeerIsTold) {
  start();
  ASSERT_EQ(get_word(0).value(), 0u);
  owner_->ask("die");
  ASSERT_TRUE(comes_true([&] { return !lost().empty(); }));
  EXPECT_THAT(lost(), HasSubstr("1 PEER_LOST: PE 1 on host b: the connection was cut"));
  const auto got = get_word(0);
  EXPECT_EQ(got.code(), Code::kPeerLost);
  EXPECT_THAT(got.status().message(), HasSubstr("PE 1 on host b"));
  EXPECT_EQ(put_word(0, 1).code(), Code::kPeerLost);
  EXPECT_EQ(link_->send({}, {}, Deadline::never()).code(), Code::kPeerLost);
}

TEST_P(MessageContract, APeerThatLeavesIsNoLoss) {
  start();
  ASSERT_EQ(get_word(0).value(), 0u);
  owner_->ask("leave");
  ASSERT_TRUE(comes_true([&] { return get_word(0).code() == Code::kPeerLost; }));
  EXPECT_THAT(get_word(0).status().message(), HasSubstr("PE 1 on host b has left"));
  EXPECT_TRUE(comes_true([&] { return left() == "1;"; })) << "told after the get has ended";
  EXPECT_EQ(lost(), "");
}

TEST_P(MessageContract, ALinkThatIsClosedIsNoLossForTheOwner) {
  start();
  ASSERT_EQ(get_word(0).value(), 0u);
  link_.reset();
  link_ = transport_->connect(owner_->address());
  ASSERT_EQ(get_word(0).value(), 0u);
  EXPECT_EQ(owner_->ask("lost"), "|");
}

TEST_P(MessageContract, ALostPeerEndsAWaitingGet) {
  start("silent-after=2");
  ASSERT_EQ(get_word(0).value(), 0u);  // greeting and get
  Status status;
  std::thread waiting([&] { status = get_word(0).status(); });
  transport_->lose(kOwner, {Code::kPeerLost, "the launcher says that it died"});
  waiting.join();
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("PE 1 on host b: the launcher says that it died"));
  EXPECT_EQ(lost(), "") << "who said it knows";
}

TEST_P(MessageContract, AnExcludedPeerWritesNothingMoreAndIsNotLetInAgain) {
  start();
  ASSERT_TRUE(put_word(0, 5).is_ok());
  ASSERT_TRUE(context_.quiet().is_ok());
  ASSERT_EQ(owner_->ask("counter puts applied"), "1");
  ASSERT_EQ(owner_->ask("exclude"), "ok");
  for (int tries = 0; tries < 3; ++tries) {
    static_cast<void>(put_word(0, 6));
    static_cast<void>(context_.quiet());
    EXPECT_FALSE(get_word(0).is_ok());
    link_ = transport_->connect(owner_->address());
  }
  EXPECT_EQ(owner_->ask("counter puts applied"), "1");
}

TEST_P(MessageContract, ASilentPeerIsLostAfterTheLimit) {
  start("", "", std::chrono::milliseconds(500));
  ASSERT_EQ(get_word(0).value(), 0u);
  owner_->stop();
  // More than any buffer on the way takes.
  const std::vector<std::byte> bytes(kBytes);
  Status full;
  for (int i = 0; i < 100 && full.is_ok(); ++i)
    full = link_->put(context_, at(0), bytes.data(), bytes.size());
  EXPECT_EQ(full.code(), Code::kPeerLost);
  const auto got = get_word(0);
  EXPECT_EQ(got.code(), Code::kPeerLost);
  EXPECT_THAT(got.status().message(), HasSubstr("PE 1 on host b: it has been silent for 0."));
  // The handler is called after the waits have ended.
  EXPECT_TRUE(comes_true([&] { return lost().find("1 PEER_LOST") != std::string::npos; }));
}

TEST_P(MessageContract, ASilentPeerIsFoundWithoutACall) {
  start("", "", std::chrono::milliseconds(500));
  ASSERT_EQ(get_word(0).value(), 0u);
  owner_->stop();
  EXPECT_TRUE(
      comes_true([&] { return lost().find("it has been silent for") != std::string::npos; }));
  owner_->go_on();
}

TEST_P(MessageContract, AnIdlePeerThatLivesIsNotLost) {
  constexpr auto kLimit = std::chrono::milliseconds(500);
  start("", "", kLimit);
  ASSERT_EQ(get_word(0).value(), 0u);
  // The limit three times over, in which nobody says anything but that it lives.
  ::usleep(3 * std::chrono::microseconds(kLimit).count());
  EXPECT_EQ(lost(), "");
  owner_->memory<std::uint64_t>(0) = 4;
  EXPECT_EQ(get_word(0).value(), 4u);
}

TEST_P(MessageContract, AContextBoundsItsWaits) {
  start();
  ASSERT_EQ(get_word(0).value(), 0u);
  owner_->stop();
  context_.set_limit(std::chrono::milliseconds(50));
  const auto got = get_word(0);
  EXPECT_EQ(got.code(), Code::kTimeout);
  EXPECT_THAT(got.status().message(), HasSubstr("PE 1 on host b has not answered in time"));
  // More than any buffer on the way takes.
  const std::vector<std::byte> bytes(kBytes);
  Status full;
  for (int i = 0; i < 100 && full.is_ok(); ++i)
    full = link_->put(context_, at(0), bytes.data(), bytes.size());
  EXPECT_EQ(full.code(), Code::kTimeout);
  EXPECT_EQ(context_.quiet().code(), Code::kTimeout);
  owner_->go_on();
  context_.set_limit(kPromise);
  // What was late is thrown away, and the link works on.
  EXPECT_TRUE(context_.quiet().is_ok());
  owner_->memory<std::uint64_t>(0) = 9;
  EXPECT_EQ(get_word(0).value(), 9u);
}

TEST_P(MessageContract, AnInterruptedThreadStopsWaiting) {
  start("silent-after=2");
  ASSERT_EQ(get_word(0).value(), 0u);
  set_thread_interrupt_handler([] { return 1; });
  EXPECT_EQ(get_word(0).status().message(), interruption().message());
  set_thread_interrupt_handler(nullptr);
}

TEST_P(MessageContract, ACutConnectionIsToldOnBothSides) {
  start("cut-after=4");
  Status status;
  for (int i = 0; i < 10 && status.is_ok(); ++i) status = get_word(0).status();
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("PE 1 on host b: the connection was cut"));
  EXPECT_TRUE(comes_true([&] {
    return owner_->ask("lost").find("PEER_LOST: PE 0 on host a: the connection was cut") !=
           std::string::npos;
  }));
}

TEST_P(MessageContract, DelayAndReorderChangeNoResult) {
  start("delay=1ms,reorder=2ms", "delay=1ms,reorder=2ms");
  std::unique_ptr<Link> second = transport_->connect(owner_->address());
  for (std::uint64_t i = 1; i <= 20; ++i) {
    ASSERT_TRUE(put_word(0, i).is_ok());
    ASSERT_TRUE(second->put(context_, at(8), &i, 8).is_ok());
    ASSERT_TRUE(context_.quiet().is_ok());
    ASSERT_EQ(owner_->memory<std::uint64_t>(0), i);
    ASSERT_EQ(owner_->memory<std::uint64_t>(8), i);
    ASSERT_EQ(get_word(8).value(), i);
  }
}

TEST_P(MessageContract, AWrongSecretIsNotLetIn) {
  start();
  PeerAddress wrong = owner_->address();
  wrong.address[0] = wrong.address[0] == '0' ? '1' : '0';
  std::unique_ptr<Link> link = transport_->connect(wrong);
  std::uint64_t value = 0;
  const Status status = link->get(context_, &value, at(0), 8);
  EXPECT_EQ(status.code(), Code::kAuth);
  EXPECT_THAT(status.message(),
              HasSubstr("PE 1 on host b: it refused the connection: the caller does not "
                        "know the secret"));
  EXPECT_EQ(owner_->ask("counter refused: not admitted"), "1");
  ASSERT_EQ(get_word(0).value(), 0u);
}

TEST_P(MessageContract, WhoCannotBeReachedIsNamed) {
  start();
  PeerAddress nobody = owner_->address();
  const std::size_t slash = nobody.address.find('/');
  std::string where = "unix:memspan-nobody-is-there";
  if (GetParam() >= Backend::kMessageUcx) where = "ucx:127.0.0.1:1";
  if (GetParam() == Backend::kMessageTls) where = "tls:" + std::string(64, '0') + ":" + where;
  nobody.address = nobody.address.substr(0, slash + 1) + where;
  std::unique_ptr<Link> link = transport_->connect(nobody);
  std::uint64_t value = 0;
  const Status status = link->get(context_, &value, at(0), 8);
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_THAT(status.message(), HasSubstr("PE 1 on host b: connecting: "));
  EXPECT_EQ(link->put(context_, at(0), &value, 8).code(), Code::kPeerLost);
  EXPECT_FALSE(link->quiet(context_).is_ok());
}

TEST_P(MessageContract, AChildOfForkHoldsNoConnection) {
  start();
  ASSERT_EQ(get_word(0).value(), 0u);
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    transport_->forget_in_child();
    char byte = 0;
    ::close(hold[1]);
    [[maybe_unused]] const auto got = ::read(hold[0], &byte, 1);
    _exit(0);
  }
  ::close(hold[0]);
  // The link still works, and its end reaches the owner although the child lives.
  ASSERT_EQ(get_word(0).value(), 0u);
  transport_->lose(kOwner, {Code::kPeerLost, "test"});
  EXPECT_TRUE(comes_true([&] { return owner_->ask("lost") != "|"; }));
  ::close(hold[1]);
  ::waitpid(child, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(Carriers, MessageContract,
                         testing::Values(Backend::kMessageUnix, Backend::kMessageTcp,
                                         Backend::kMessageTls, Backend::kMessageUcx),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace memspan::contract
