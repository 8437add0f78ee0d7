// SPDX-License-Identifier: Apache-2.0
// Two processes have one connection, whichever of them makes it, also if both do at once; and
// whatever happens while they greet, no call hangs and no request reaches a wrong process.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "contract/transport/owner_process.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/random.h"
#include "support/connected.h"
#include "support/message_counters.h"
#include "transport/message/session.h"

namespace memspan::contract {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr auto kPromise = std::chrono::seconds(20);  // a machine under load
constexpr auto kLimit = milliseconds(200);
constexpr std::size_t kMemory = std::size_t{16} << 20;

template <typename Ask>
bool comes_true(Ask ask) {
  const Deadline deadline = Deadline::after(kPromise);
  while (!ask()) {
    if (deadline.has_passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

// One of two processes.
class End {
 public:
  End(Backend backend, int self, Duration connect_limit = kPromise,
      Duration silence_limit = Duration::max())
      : memory_(kMemory) {
    MessageOptions options = message_options(backend, self);
    options.connect_limit = connect_limit;
    options.silence_limit = silence_limit;
    options.handlers.on_message = [this](int peer, const MessageTag& tag, const Buffer& bytes) {
      // As a handler answers: it does not wait.
      if (tag.kind == kAsks) {
        EXPECT_TRUE(link_->send({0, tag.id, 0}, bytes, Deadline::never()).is_ok());
      }
      MutexLock lock(mutex_);
      messages_ += std::to_string(peer) + ":" + std::to_string(tag.id) + ";";
      received_.fetch_add(1);
    };
    options.handlers.on_peer_lost = [this](int peer, const Status& why) {
      MutexLock lock(mutex_);
      lost_ += std::to_string(peer) + " " + why.to_string() + ";";
    };
    options.handlers.on_peer_left = [this](int peer) {
      MutexLock lock(mutex_);
      lost_ += std::to_string(peer) + " has left;";
    };
    transport_ = MessageTransport::make(std::move(options)).value();
    region_ = transport_->expose({.base = memory_.data(), .bytes = memory_.size()}).value();
    context_.set_limit(kPromise);
    address_ = {self, "PE " + std::to_string(self), transport_->address()};
  }
  ~End() { link_.reset(); }

  static constexpr std::uint64_t kAsks = 7;  // kind of a message that is answered

  void meet(const End& other) {
    link_ = transport_->connect(other.address_);
    there_ = other.region_->describe();
  }
  RemotePlace at(std::uint64_t offset) const { return {there_, offset}; }
  Status put(std::uint64_t offset, std::uint64_t value) {
    MEMSPAN_PASS(link_->put(context_, at(offset), &value, sizeof value));
    return link_->quiet(context_);
  }
  Result<std::uint64_t> get(std::uint64_t offset) {
    std::uint64_t value = 0;
    MEMSPAN_PASS(link_->get(context_, &value, at(offset), sizeof value));
    return value;
  }
  std::uint64_t counter(std::string_view name) const {
    return message_counter(*transport_, name).value();
  }
  std::uint64_t made() const { return counter("connections made"); }
  std::string messages() {
    MutexLock lock(mutex_);
    return messages_;
  }
  std::string lost() {
    MutexLock lock(mutex_);
    return lost_;
  }
  void forget_losses() {
    MutexLock lock(mutex_);
    lost_.clear();
  }
  int received() const { return received_.load(); }
  void leave() {
    link_.reset();
    region_.reset();
    transport_.reset();
  }

  std::uint64_t word(std::uint64_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, memory_.data() + offset, sizeof value);
    return value;
  }

  std::vector<std::byte> memory_;
  PeerAddress address_;
  Mutex mutex_;
  std::string messages_ MEMSPAN_GUARDED_BY(mutex_);
  std::string lost_ MEMSPAN_GUARDED_BY(mutex_);
  std::atomic<int> received_{0};
  OperationContext context_;
  RemoteRegion there_;
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<ExposedRegion> region_;
  std::unique_ptr<Link> link_;
};

std::string in_order(int peer, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += std::to_string(peer) + ":" + std::to_string(i) + ";";
  return all;
}

class PairTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    one_ = std::make_unique<End>(GetParam(), 1);
    other_ = std::make_unique<End>(GetParam(), 2);
    one_->meet(*other_);
    other_->meet(*one_);
  }
  static int descriptors() {
    DIR* const all = ::opendir("/proc/self/fd");
    int count = 0;
    while (::readdir(all) != nullptr) ++count;
    ::closedir(all);
    return count;
  }
  // What both do at once, and whether they have lost each other.
  template <typename Do>
  void at_once(Do what) {
    std::atomic<int> ready{0};
    const auto begin = [&](End& end) {
      ready.fetch_add(1);
      while (ready.load() < 2) continue;
      what(end);
    };
    std::thread there([&] { begin(*other_); });
    begin(*one_);
    there.join();
    EXPECT_EQ(one_->lost(), "");
    EXPECT_EQ(other_->lost(), "");
  }

  std::unique_ptr<End> one_;
  std::unique_ptr<End> other_;
};

// Not over UCX 1.13, which aborts if workers of one process open and close descriptors at once. The
// tests of jobs over UCX have a process for each.
class AtOnceTest : public PairTest {};

TEST_P(AtOnceTest, TwoThatConnectAtOnceHaveOneConnectionAndKeepTheOrder) {
  constexpr int kPosts = 20;
  for (int round = 0; round < 40; ++round) {
    SetUp();
    at_once([](End& end) {
      for (std::uint64_t i = 0; i < kPosts; ++i)
        ASSERT_TRUE(end.link_->post({0, i, 0}, {}).is_ok());
      ASSERT_TRUE(end.put(0, 5).is_ok());
      EXPECT_EQ(end.get(0).value(), 5U);
    });
    EXPECT_EQ(one_->messages(), in_order(2, kPosts));
    EXPECT_EQ(other_->messages(), in_order(1, kPosts));
    ASSERT_EQ(one_->made() + other_->made(), 1U) << "round " << round;
  }
}

TEST_P(AtOnceTest, ManyLinksAtOnceWork) {
  for (int round = 0; round < 10; ++round) {
    SetUp();
    at_once([&](End& end) {
      const PeerAddress& peer = &end == one_.get() ? other_->address_ : one_->address_;
      std::vector<std::thread> threads;
      for (std::uint64_t i = 1; i <= 4; ++i)
        threads.emplace_back([&, i] {
          const auto link = end.transport_->connect(peer);
          OperationContext context;
          EXPECT_TRUE(link->put(context, end.at(8 * i), &i, sizeof i).is_ok());
          const Status quiet = link->quiet(context);
          EXPECT_TRUE(quiet.is_ok()) << quiet.to_string();
        });
      for (std::thread& thread : threads) thread.join();
      EXPECT_TRUE(end.get(8).is_ok());
    });
    for (std::uint64_t i = 1; i <= 4; ++i)
      EXPECT_EQ(one_->word(8 * i) + other_->word(8 * i), 2 * i);
  }
}

TEST_P(PairTest, AConnectionOfThePeerIsUsed) {
  ASSERT_TRUE(one_->put(0, 3).is_ok());
  ASSERT_TRUE(other_->put(8, 4).is_ok());
  EXPECT_EQ(one_->get(0).value(), 3U);
  EXPECT_EQ(other_->get(8).value(), 4U);
  EXPECT_EQ(one_->made(), 1U);
  EXPECT_EQ(other_->made(), 0U);
}

TEST_P(PairTest, ALinkThatIsClosedLeavesTheConnectionToThePeer) {
  ASSERT_TRUE(one_->put(0, 3).is_ok());
  ASSERT_TRUE(other_->put(8, 4).is_ok());
  std::vector<std::byte> to(std::size_t{1} << 20);
  ASSERT_TRUE(one_->link_->get_nbi(one_->context_, to.data(), one_->at(0), to.size()).is_ok());
  const int before = descriptors();
  one_->link_.reset();
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(other_->put(8, i).is_ok());
  EXPECT_EQ(other_->get(8).value(), 99U);
  one_->meet(*other_);
  EXPECT_EQ(one_->get(0).value(), 3U);
  one_->link_.reset();
  other_->link_.reset();
  if (GetParam() != Backend::kMessageUcx) {
    EXPECT_TRUE(comes_true([&] { return descriptors() < before; })) << "closed by its maker";
  }
  one_->meet(*other_);
  other_->meet(*one_);
  EXPECT_EQ(one_->get(0).value(), 3U);
  EXPECT_EQ(other_->get(8).value(), 99U);
  EXPECT_EQ(one_->lost() + other_->lost(), "");
}

TEST_P(AtOnceTest, LinksOpenAndCloseAtOnce) {
  for (int round = 0; round < 40; ++round)
    at_once([&](End& end) {
      EXPECT_TRUE(end.put(0, 1).is_ok());
      end.link_.reset();
      end.meet(&end == one_.get() ? *other_ : *one_);
    });
}

TEST_P(PairTest, APeerThatLeavesIsNoLossAlsoOverItsOwnConnection) {
  for (const bool is_its_own : {false, true}) {
    SetUp();
    if (is_its_own) {
      ASSERT_TRUE(other_->put(0, 1).is_ok());
    }
    ASSERT_TRUE(one_->put(0, 1).is_ok());
    other_->leave();
    EXPECT_TRUE(comes_true([&] { return !one_->lost().empty(); }));
    EXPECT_EQ(one_->lost(), "2 has left;");
    EXPECT_THAT(one_->get(0).status().message(), HasSubstr("PE 2 has left"));
  }
}

TEST_P(PairTest, ALossIsReportedOnceOnEachSide) {
  ASSERT_TRUE(one_->put(0, 1).is_ok());
  ASSERT_TRUE(other_->put(0, 1).is_ok());
  one_->transport_->lose(2, {Code::kPeerLost, "the test says so"});
  EXPECT_TRUE(comes_true([&] { return !other_->lost().empty(); }));
  EXPECT_EQ(other_->lost(), "1 PEER_LOST: PE 1: the connection was cut;");
  EXPECT_EQ(one_->lost(), "") << "the one that says so knows";
  EXPECT_EQ(other_->get(0).code(), Code::kPeerLost);
  one_->meet(*other_);
  other_->meet(*one_);
  at_once([](End& end) {
    end.forget_losses();
    EXPECT_TRUE(end.put(0, 1).is_ok());
  });
}

TEST_P(PairTest, AnExcludedPeerIsNotServedOverAnyConnection) {
  ASSERT_TRUE(one_->put(0, 1).is_ok());
  ASSERT_TRUE(other_->put(0, 1).is_ok());
  one_->transport_->exclude(2, {Code::kPeerLost, "the test says so"});
  const std::uint64_t before = one_->counter("puts applied");
  EXPECT_FALSE(other_->put(0, 2).is_ok());
  EXPECT_FALSE(one_->put(0, 2).is_ok());
  one_->meet(*other_);
  other_->meet(*one_);
  EXPECT_THAT(one_->put(0, 2).message(), HasSubstr("PE 2 is not a member any more"));
  EXPECT_FALSE(other_->put(0, 2).is_ok());
  EXPECT_EQ(one_->counter("puts applied"), before);
}

// More messages than a process keeps before their handlers have run, whose answers are behind what
// the user threads move.
TEST_P(PairTest, MessagesPutsAndGetsInBothDirectionsDoNotWaitForEachOther) {
  constexpr std::size_t kLarge = std::size_t{8} << 20;
  constexpr int kMessages = 24;
  const std::vector<std::byte> text(std::size_t{1} << 20);
  at_once([&](End& end) {
    std::thread asks([&] {
      for (std::uint64_t i = 0; i < kMessages; ++i)
        EXPECT_TRUE(end.link_->send({End::kAsks, i, 0}, text, Deadline::after(kPromise)).is_ok());
    });
    std::vector<std::byte> bytes(kLarge, std::byte{7});
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(end.link_->put(end.context_, end.at(0), bytes.data(), kLarge).is_ok());
      const Status got = end.link_->get(end.context_, bytes.data(), end.at(kLarge), kLarge);
      EXPECT_TRUE(got.is_ok()) << got.to_string();
    }
    EXPECT_TRUE(end.link_->quiet(end.context_).is_ok());
    asks.join();
  });
  EXPECT_TRUE(comes_true(
      [&] { return one_->received() == 2 * kMessages && other_->received() == 2 * kMessages; }));
  EXPECT_EQ(one_->made() + other_->made(), 1U);
}

// A process of which the test writes every frame; not over UCX, as above. Its number is lower than
// that of the other one.
class FramesTest : public testing::TestWithParam<Backend> {
 protected:
  FramesTest() : carrier_(make_carrier(GetParam())), listener_(carrier_->listen().value()) {
    start(kPromise);
  }
  void start(Duration connect_limit, Duration silence_limit = Duration::max()) {
    other_ = std::make_unique<End>(GetParam(), 2, connect_limit, silence_limit);
    other_->there_ = {{1, 1}, 4096, MemoryKind::kHost, {}};
  }
  // The other one connects here; its link has the number `peer`.
  void meet(int peer = 1) {
    other_->link_ = other_->transport_->connect(
        {peer, "PE " + std::to_string(peer), secret_text_ + "/" + listener_->address()});
  }
  void expect_connection() {
    stream_.reset();
    session_ = Session::accepting(secret_);
    sent_ = received_ = 0;
    ASSERT_TRUE(comes_true([&] { return (stream_ = listener_->accept()) != nullptr; }));
  }
  void connect() {
    const std::string& address = other_->address_.address;
    const std::size_t slash = address.find('/');
    stream_ = connected(*carrier_, address.substr(slash + 1)).value();
    session_ = Session::connecting(SipKey::from_hex(address.substr(0, slash)).value());
    sent_ = received_ = 0;
  }
  Hello hello(int self = 1) const {
    return {.peer = self,
            .name = "PE " + std::to_string(self),
            .nonce = session_.nonce(),
            .proof = session_.proof(secret_)};
  }
  void send(const Hello& greeting) { send(greeting.frame(), greeting.payload()); }
  void send(FrameType type) { send({.type = type, .region = {}}); }
  void send(Frame frame, std::string_view payload = {}) {
    frame.payload = static_cast<std::uint32_t>(payload.size());
    FrameHeader header;
    encode(frame, header);
    session_.seal(header, sent_++);
    std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
    bytes += payload;
    const iovec part{bytes.data(), bytes.size()};
    ASSERT_TRUE(comes_true([&] { return stream_->send({&part, 1}) != 0; }));
  }
  // The next frame, or a goodbye at the end of the connection.
  Frame receive() {
    std::string header = receive_bytes(kFrameBytes);
    if (header.size() < kFrameBytes)
      return {.type = FrameType::kBye, .flags = kLeaves, .region = {}};
    const std::span<const std::byte, kFrameBytes> bytes(
        reinterpret_cast<const std::byte*>(header.data()), kFrameBytes);
    const auto frame = session_.open(bytes, received_++);
    EXPECT_TRUE(frame.is_ok()) << frame.status().to_string();
    text_ = receive_bytes(frame->payload);
    return *frame;
  }
  std::string receive_bytes(std::size_t count) {
    std::string bytes(count, ' ');
    std::size_t done = 0;
    comes_true([&] {
      if (done == count) return true;
      const iovec part{bytes.data() + done, count - done};
      const ssize_t got = receive_shortly(*stream_, {&part, 1});
      if (got < 0) bytes.resize(count = done);
      if (got > 0) done += static_cast<std::size_t>(got);
      return done == count;
    });
    return bytes;
  }
  void start_put() {
    caller_ = std::thread([this] { put_ = other_->put(0, 1); });
  }
  Status finish_put() {
    caller_.join();
    return put_;
  }
  void answer_put() {
    Frame frame = receive();
    while (frame.type != FrameType::kFlush && frame.type != FrameType::kBye) frame = receive();
    EXPECT_EQ(frame.type, FrameType::kFlush);
    send({.type = FrameType::kFlushed, .tag = frame.tag, .region = {}});
  }

  const std::string secret_text_ = random_hex(sizeof(SipKey));
  const SipKey secret_ = SipKey::from_hex(secret_text_).value();
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<End> other_;
  std::unique_ptr<ByteStream> stream_;
  Session session_ = Session::connecting({});
  std::uint32_t sent_ = 0;
  std::uint32_t received_ = 0;
  std::string text_;  // the payload of the last frame
  std::thread caller_;
  Status put_;
};

TEST_P(FramesTest, NothingFollowsAGreetingBeforeItsAnswer) {
  meet();
  ASSERT_TRUE(other_->link_->post({}, {}).is_ok());
  start_put();
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  char byte = 0;
  const iovec part{&byte, 1};
  EXPECT_EQ(receive_shortly(*stream_, {&part, 1}), 0);
  send(FrameType::kWelcome);
  answer_put();
  EXPECT_TRUE(finish_put().is_ok());
}

TEST_P(FramesTest, ALiarGetsNoRequests) {
  meet();
  connect();
  Hello liar = hello();
  ++liar.proof;
  send(liar);
  EXPECT_EQ(receive().type, FrameType::kWelcome);
  const std::unique_ptr<ByteStream> lies = std::move(stream_);
  start_put();
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  send(FrameType::kWelcome);
  answer_put();
  EXPECT_TRUE(finish_put().is_ok());
}

// The link is connecting to the process with the number 3, which does not answer.
TEST_P(FramesTest, ALiarIsNotYieldedTo) {
  for (const bool is_lie : {true, false}) {
    meet(3);
    start_put();
    expect_connection();
    EXPECT_EQ(receive().type, FrameType::kHello);
    const std::unique_ptr<ByteStream> silent = std::move(stream_);
    connect();
    Hello greeting = hello(3);
    if (is_lie) ++greeting.proof;
    send(greeting);
    EXPECT_EQ(receive().type, is_lie ? FrameType::kWelcome : FrameType::kYield);
    other_->transport_->lose(3, {Code::kPeerLost, "the test says so"});
    EXPECT_EQ(finish_put().code(), Code::kPeerLost);
  }
}

TEST_P(FramesTest, AProcessThatYieldsUsesTheConnectionOfThePeer) {
  meet();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(other_->link_->post({0, i, 0}, {}).is_ok());
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  send(FrameType::kYield);
  const std::unique_ptr<ByteStream> yielded = std::move(stream_);
  connect();
  send(hello());
  EXPECT_EQ(receive().type, FrameType::kWelcome);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(receive().operand, i);
  start_put();
  answer_put();
  EXPECT_TRUE(finish_put().is_ok());
  EXPECT_EQ(other_->made(), 0U);
}

// It yields by itself: the greeting of the lower number comes before the answer to its own.
TEST_P(FramesTest, TheGreetingOfTheLowerNumberIsPreferred) {
  meet();
  start_put();
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  const std::unique_ptr<ByteStream> first = std::move(stream_);
  connect();
  send(hello());
  EXPECT_EQ(receive().type, FrameType::kWelcome);
  answer_put();
  EXPECT_TRUE(finish_put().is_ok());
  EXPECT_EQ(other_->lost(), "");
}

TEST_P(FramesTest, APeerThatEndsAfterItsYieldIsLost) {
  meet();
  start_put();
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  send(FrameType::kYield);
  listener_.reset();
  stream_.reset();
  const auto begin = Clock::now();
  const Status put = finish_put();
  EXPECT_EQ(put.code(), Code::kPeerLost);
  EXPECT_THAT(put.message(), HasSubstr("PE 1: connecting"));
  EXPECT_LT(Clock::now() - begin, kPromise);
}

TEST_P(FramesTest, AYieldThatLeadsToNothingIsFollowedByASecondGreeting) {
  meet();
  start_put();
  expect_connection();
  EXPECT_EQ(receive().flags, 0);
  send(FrameType::kYield);
  expect_connection();
  EXPECT_EQ(receive().flags, kApart) << "it does not yield again";
  send(FrameType::kWelcome);
  answer_put();
  EXPECT_TRUE(finish_put().is_ok());
  EXPECT_EQ(other_->lost(), "");
}

TEST_P(FramesTest, ACallEndsAtItsLimitInEachStateAndTheLinkIsIntact) {
  meet();
  other_->context_.set_limit(kLimit);
  EXPECT_EQ(other_->put(0, 1).code(), Code::kTimeout) << "connecting";
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  EXPECT_EQ(other_->put(0, 1).code(), Code::kTimeout) << "greeting";
  EXPECT_EQ(other_->link_->send({}, {}, Deadline::after(kLimit)).code(), Code::kTimeout);
  send(FrameType::kYield);
  EXPECT_EQ(other_->put(0, 1).code(), Code::kTimeout) << "yielded";
  other_->context_.set_limit(kPromise);
  const std::unique_ptr<ByteStream> yielded = std::move(stream_);
  connect();
  send(hello());
  EXPECT_EQ(receive().type, FrameType::kWelcome);
  start_put();
  answer_put();
  static_cast<void>(finish_put());  // what was late is reported
  start_put();
  answer_put();
  EXPECT_TRUE(finish_put().is_ok());
}

TEST_P(FramesTest, APeerThatDoesNotAnswerIsLostInEachState) {
  for (const bool yields : {false, true}) {
    start(yields ? kLimit : kPromise, yields ? kPromise : kLimit);
    meet();
    start_put();
    expect_connection();
    EXPECT_EQ(receive().type, FrameType::kHello);
    if (yields) send(FrameType::kYield);
    const Status put = finish_put();
    EXPECT_THAT(put.message(), HasSubstr(yields ? "PE 1: connecting: it has not answered for 0.2 s"
                                                : "PE 1: it has not greeted in time"));
    EXPECT_TRUE(comes_true([&] { return !other_->lost().empty(); }));
  }
}

TEST_P(FramesTest, ALossOrTheEndOfTheLinkEndsAGreeting) {
  meet();
  start_put();
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  other_->transport_->lose(1, {Code::kPeerLost, "the test says so"});
  EXPECT_THAT(finish_put().message(), HasSubstr("PE 1: the test says so"));
  meet();
  start_put();
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  stream_.reset();
  EXPECT_THAT(finish_put().message(), HasSubstr("PE 1: the connection was cut"));
  meet();
  ASSERT_TRUE(other_->link_->post({}, {}).is_ok());
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  other_->link_.reset();
  send(FrameType::kWelcome);
  EXPECT_EQ(receive().type, FrameType::kBye);
}

TEST_P(FramesTest, WhatWaitsForAnAnswerToTheGreetingIsBounded) {
  meet();
  const std::vector<std::byte> large(std::size_t{1} << 20);
  ASSERT_TRUE(other_->link_->post({}, large).is_ok());
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  Status posted;
  for (int i = 0; i < 10 && posted.is_ok(); ++i) posted = other_->link_->post({}, large);
  EXPECT_EQ(posted.code(), Code::kTimeout);
  EXPECT_THAT(posted.message(), HasSubstr("PE 1 has not answered yet, and "));
}

std::atomic<bool> has_warned{false};

TEST_P(FramesTest, AnotherVersionIsRefusedByNameOnBothSides) {
  has_warned.store(false);
  set_log_sink([](int, const char* line) {
    EXPECT_THAT(line, HasSubstr("PE 1 runs memspan 9.8.7, and PE 2 on host c runs memspan "));
    has_warned.store(true);
  });
  connect();
  Hello greeting = hello();
  ++greeting.protocol;
  greeting.version = "9.8.7";
  send(greeting);
  EXPECT_EQ(receive().type, FrameType::kRefused);
  EXPECT_THAT(text_,
              HasSubstr("PE 1 runs memspan 9.8.7, and PE 2 on host c runs memspan " MEMSPAN_VERSION
                        ": processes of a job must have the same version"));
  EXPECT_TRUE(comes_true([] { return has_warned.load(); }));
  set_log_sink(nullptr);
  // The text that this process sent reaches the caller of the other.
  meet();
  start_put();
  expect_connection();
  EXPECT_EQ(receive().type, FrameType::kHello);
  send({.type = FrameType::kRefused, .kind = static_cast<int>(Refusal::kHello), .region = {}},
       "PE 1 runs memspan 9.8.7");
  const Status put = finish_put();
  EXPECT_EQ(put.code(), Code::kAuth);
  EXPECT_THAT(put.message(), HasSubstr("PE 1: it refused the connection: PE 1 runs memspan 9.8.7"));
}

TEST_P(FramesTest, TheSameProtocolOfAnotherVersionIsWelcome) {
  connect();
  Hello greeting = hello();
  greeting.version = "9.8.7";
  send(greeting);
  EXPECT_EQ(receive().type, FrameType::kWelcome);
}

INSTANTIATE_TEST_SUITE_P(Carriers, PairTest,
                         testing::Values(Backend::kMessageUnix, Backend::kMessageTcp,
                                         Backend::kMessageTls, Backend::kMessageUcx),
                         [](const auto& one) { return std::string(name_of(one.param)); });
INSTANTIATE_TEST_SUITE_P(Carriers, AtOnceTest,
                         testing::Values(Backend::kMessageUnix, Backend::kMessageTcp,
                                         Backend::kMessageTls),
                         [](const auto& one) { return std::string(name_of(one.param)); });
INSTANTIATE_TEST_SUITE_P(Carriers, FramesTest,
                         testing::Values(Backend::kMessageUnix, Backend::kMessageTcp,
                                         Backend::kMessageTls),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace memspan::contract
