// SPDX-License-Identifier: Apache-2.0
// A process that knows the socket, or even the secret, and sends what no peer of ours does; or that
// sits where an owner was. The owner refuses it, counts it, touches no memory and serves the
// others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "contract/transport/owner_process.h"
#include "support/connected.h"
#include "transport/message/session.h"

namespace memspan::contract {
namespace {

constexpr std::string_view kGreeting = "0.0.0\nstranger";  // version and name
constexpr Duration kSilenceLimit = std::chrono::milliseconds(500);

class HostileTest : public testing::TestWithParam<Backend> {
 protected:
  HostileTest() : owner_(GetParam(), "", kSilenceLimit) {
    std::memset(owner_.base(), 7, kBytes);
    const std::string& address = owner_.address().address;
    const std::size_t slash = address.find('/');
    secret_ = SipKey::from_hex(address.substr(0, slash)).value();
    where_ = address.substr(slash + 1);
    carrier_ = make_carrier(GetParam());
  }
  void TearDown() override {
    for (std::size_t i = 0; i < kBytes; ++i)
      ASSERT_EQ(owner_.memory<char>(i), 7) << "memory was touched at " << i;
    // Who behaves is served.
    auto transport = MessageTransport::make(message_options(GetParam(), 5)).value();
    auto link = transport->connect(owner_.address());
    OperationContext context;
    char byte = 0;
    EXPECT_TRUE(link->get(context, &byte, {owner_.region(), 0}, 1).is_ok());
  }
  // A connection of a stranger; `greets` with the right secret.
  void open(bool greets) {
    stream_ = connected(*carrier_, where_).value();
    session_ = Session::connecting(secret_);
    sequence_ = 0;
    if (!greets) return;
    send(greeting(), kGreeting);
    EXPECT_EQ(next_answer(), FrameType::kWelcome);
  }
  Frame greeting() const { return Hello{.peer = 9, .nonce = session_.nonce()}.frame(); }
  void send_bytes(std::string_view bytes) { send_bytes(*stream_, bytes); }
  static void send_bytes(ByteStream& stream, std::string_view bytes) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(10));
    while (!bytes.empty() && !deadline.has_passed()) {
      const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
      const ssize_t sent = send_shortly(stream, {&part, 1});
      if (sent < 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  std::string bytes_of(const Frame& frame, std::uint32_t sequence) const {
    FrameHeader header;
    encode(frame, header);
    session_.seal(header, sequence);
    return {reinterpret_cast<const char*>(header.data()), header.size()};
  }
  void send(Frame frame, std::string_view payload = {}) {
    frame.payload = static_cast<std::uint32_t>(payload.size());
    send_bytes(bytes_of(frame, sequence_++) + std::string(payload));
  }
  // Whether the owner ends the connection within the promised time.
  bool is_ended() {
    const Deadline deadline = Deadline::after(std::chrono::seconds(10));
    char bytes[4096];
    while (!deadline.has_passed()) {
      const iovec part{bytes, sizeof bytes};
      const ssize_t got = receive_shortly(*stream_, {&part, 1});
      if (got < 0) return true;
    }
    return false;
  }
  // The type of the next frame that comes.
  FrameType next_answer() {
    FrameHeader header;
    std::size_t done = 0;
    const Deadline deadline = Deadline::after(std::chrono::seconds(10));
    while (done < header.size() && !deadline.has_passed()) {
      const iovec part{header.data() + done, header.size() - done};
      const ssize_t got = receive_shortly(*stream_, {&part, 1});
      if (got < 0) return FrameType::kBye;
      done += static_cast<std::size_t>(got);
    }
    return static_cast<FrameType>(header[0]);
  }
  std::string counter(const std::string& name) { return owner_.ask("counter " + name); }
  Frame put(std::uint64_t offset) {
    return {.type = FrameType::kPut, .region = owner_.region().id, .offset = offset};
  }

  OwnerProcess owner_;
  SipKey secret_;
  std::string where_;
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<ByteStream> stream_;
  Session session_ = Session::connecting({});
  std::uint32_t sequence_ = 0;
};

TEST_P(HostileTest, GarbageEndsItsConnection) {
  std::minstd_rand dice(1);
  for (int round = 0; round < 20; ++round) {
    open(round % 2 == 1);
    std::string garbage(1000, ' ');
    for (char& byte : garbage) byte = static_cast<char>(dice());
    send_bytes(garbage);
    EXPECT_TRUE(is_ended()) << round;
  }
  EXPECT_EQ(counter("connections with bad frames"), "20");
}

TEST_P(HostileTest, WhoPromisesSignsOfLifeAndGivesNoneIsLost) {
  open(true);
  send({.type = FrameType::kBeat, .region = {}});
  EXPECT_EQ(next_answer(), FrameType::kAlive);
  EXPECT_TRUE(is_ended());
  // It ends the connection first, and tells its handler then.
  std::string lost;
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  while (lost.size() < 2 && !deadline.has_passed()) lost = owner_.ask("lost");
  EXPECT_NE(lost.find("stranger: it has been silent for"), std::string::npos) << lost;
}

TEST_P(HostileTest, NothingIsDoneBeforeAGreeting) {
  open(false);
  send(put(0), "x");
  EXPECT_TRUE(is_ended());
  open(false);
  session_ = Session::connecting({secret_.low, secret_.high + 1});
  send(greeting(), kGreeting);
  EXPECT_EQ(next_answer(), FrameType::kRefused);
  EXPECT_TRUE(is_ended());
  EXPECT_EQ(counter("refused: not admitted"), "2");
}

// Somebody has recorded all that a peer sent.
TEST_P(HostileTest, WhatIsReplayedOpensNothing) {
  open(true);
  Frame frame = put(0);
  frame.region.generation += 1;  // refused, so that the memory stays as it was
  send(frame, "x");
  EXPECT_EQ(next_answer(), FrameType::kRefused);
  const std::unique_ptr<ByteStream> first = std::move(stream_);
  const Session recorded = session_;
  open(false);
  session_ = recorded;
  send(greeting(), kGreeting);
  send(frame, "x");
  EXPECT_EQ(next_answer(), FrameType::kRefused);  // of the greeting
  EXPECT_TRUE(is_ended());
  EXPECT_EQ(counter("refused: not admitted"), "1");
  EXPECT_EQ(counter("refused: stale region"), "1");
}

TEST_P(HostileTest, AFrameOfWhoDoesNotKnowTheKeyEndsTheConnection) {
  open(true);
  session_ = Session::connecting(secret_);  // of another connection
  send(put(0), "x");
  EXPECT_TRUE(is_ended());
  EXPECT_EQ(counter("connections with bad frames"), "1");
}

// It has the owner's address, and answers without its secret.
TEST_P(HostileTest, WhoSitsInTheOwnersPlaceIsNotBelieved) {
  const auto listener = carrier_->listen().value();
  PeerAddress peer = owner_.address();
  peer.address.replace(peer.address.find('/') + 1, std::string::npos, listener->address());
  std::thread impostor([&] {
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    std::unique_ptr<ByteStream> victim;
    while (victim == nullptr && !deadline.has_passed()) victim = listener->accept();
    if (victim == nullptr) return;  // the get fails
    Session guessed = Session::connecting({secret_.low, secret_.high ^ 1});
    FrameHeader header;
    encode({.type = FrameType::kData, .payload = 1, .tag = 1, .region = {}}, header);
    guessed.seal(header, 0);
    send_bytes(*victim,
               std::string(reinterpret_cast<const char*>(header.data()), kFrameBytes) + "x");
    char bytes[256];
    const iovec part{bytes, sizeof bytes};
    while (receive_shortly(*victim, {&part, 1}) >= 0 && !deadline.has_passed()) continue;
  });
  auto transport = MessageTransport::make(message_options(GetParam(), 7)).value();
  auto link = transport->connect(peer);
  OperationContext context;
  char byte = 0;
  const Status got = link->get(context, &byte, {owner_.region(), 0}, 1);
  EXPECT_EQ(got.code(), Code::kPeerLost);
  EXPECT_THAT(got.message(), testing::HasSubstr("is not sealed"));
  EXPECT_EQ(byte, 0);
  impostor.join();
}

TEST_P(HostileTest, HalfAFrameIsNoFrame) {
  open(true);
  send_bytes(bytes_of(put(0), 1).substr(0, 40));
  stream_->cut();
  open(true);
  Frame half = put(0);
  half.payload = 100;
  half.region.generation += 1;
  send_bytes(bytes_of(half, 1) + "only some");
  EXPECT_EQ(next_answer(), FrameType::kRefused);
  stream_->cut();
}

TEST_P(HostileTest, WrongRegionGenerationOffsetAndWordAreRefusedAndCounted) {
  open(true);
  Frame frame = put(0);
  frame.region.number = 99;
  send(frame, "x");
  EXPECT_EQ(next_answer(), FrameType::kRefused);
  stream_.reset();
  open(true);
  frame = put(0);
  frame.region.generation ^= 1;
  send(frame, "x");
  EXPECT_EQ(next_answer(), FrameType::kRefused);
  stream_.reset();
  open(true);
  send(put(kBytes - 1), "xx");
  send(put(UINT64_MAX), "xx");
  send({.type = FrameType::kAtomic, .kind = 0xff, .width = 8, .region = owner_.region().id});
  send({.type = FrameType::kGet, .region = owner_.region().id, .length = UINT64_MAX});
  send({.type = FrameType::kFlush, .region = {}});
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  while (counter("refused: out of bounds") != "3" && !deadline.has_passed()) continue;
  EXPECT_EQ(counter("refused: no such region"), "1");
  EXPECT_EQ(counter("refused: stale region"), "1");
  EXPECT_EQ(counter("refused: out of bounds"), "3");
  EXPECT_EQ(counter("refused: not a word"), "1");
}

TEST_P(HostileTest, AWrongTypeSizeOrNumberEndsItsConnection) {
  open(true);
  send({.type = FrameType::kFetched, .region = {}});
  EXPECT_TRUE(is_ended());
  open(true);
  Frame large = put(0);
  large.payload = kMostPayload + 1;
  send_bytes(bytes_of(large, 1));
  EXPECT_TRUE(is_ended());
  open(true);
  send_bytes(bytes_of({.type = FrameType::kFlush, .region = {}}, 5));
  EXPECT_TRUE(is_ended());
  EXPECT_EQ(counter("connections with bad frames"), "3");
}

TEST_P(HostileTest, WhoAsksForMoreThanItTakesIsEnded) {
  open(true);
  const Frame get{.type = FrameType::kGet, .region = owner_.region().id, .length = kMostPayload};
  std::string many;
  for (int i = 0; i < 100; ++i) many += bytes_of(get, ++sequence_);
  sequence_ = 0;
  send_bytes(many);
  EXPECT_TRUE(is_ended());
}

TEST_P(HostileTest, ManyStrangersDoNotKeepPeersOut) {
  constexpr std::size_t kAtOnce = 10;
  std::vector<std::unique_ptr<ByteStream>> strangers;
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (strangers.size() < 300) {
    std::vector<std::unique_ptr<Opening>> openings;
    for (std::size_t i = 0; i < kAtOnce; ++i) openings.push_back(carrier_->connect(where_).value());
    for (const auto& opening : openings) {
      std::unique_ptr<ByteStream> stream;
      while (stream == nullptr && !deadline.has_passed()) stream = opening->step().value();
      strangers.push_back(std::move(stream));
    }
  }
  ASSERT_FALSE(deadline.has_passed());
  auto transport = MessageTransport::make(message_options(GetParam(), 6)).value();
  auto link = transport->connect(owner_.address());
  OperationContext context;
  char byte = 0;
  EXPECT_TRUE(link->get(context, &byte, {owner_.region(), 0}, 1).is_ok());
}

INSTANTIATE_TEST_SUITE_P(Carriers, HostileTest,
                         testing::Values(Backend::kMessageUnix, Backend::kMessageTcp,
                                         Backend::kMessageTls, Backend::kMessageUcx),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace memspan::contract
