// SPDX-License-Identifier: Apache-2.0
#include "transport/message/connection.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <optional>
#include <vector>

#include "support/connected.h"
#include "transport/message/socket/socket_carrier.h"

namespace memspan {
namespace {

constexpr SipKey kSecret{1, 2};
constexpr OutFrame kBye{{.type = FrameType::kBye, .region = {}}, nullptr};
constexpr auto kPromise = std::chrono::seconds(20);

// What one end has heard, and why it ended.
struct Heard final : ConnectionOwner {
  Status begin(const Frame& frame) override {
    goodbyes += frame.type == FrameType::kBye ? 1 : 0;
    payload.resize(frame.payload);
    return Status::ok();
  }
  std::byte* pin() override { return payload.data(); }
  void unpin() override {}
  Status end(const Frame& frame) override {
    if (frame.type == FrameType::kPut)
      for (const std::byte one : payload) is_damaged = is_damaged || one != std::byte{0x5a};
    puts += frame.type == FrameType::kPut ? 1 : 0;
    answers += frame.type == FrameType::kFlushed ? 1 : 0;
    return Status::ok();
  }
  void on_end(const Status& why) override { ended = why; }

  int goodbyes = 0;
  int puts = 0;
  int answers = 0;
  bool is_damaged = false;
  std::vector<std::byte> payload;
  std::optional<Status> ended;
};

// A stream that takes nothing some times, as when it is full.
class BusyStream final : public ByteStream {
 public:
  BusyStream(std::unique_ptr<ByteStream> stream, int& times)
      : stream_(std::move(stream)), times_(times) {}
  int descriptor() const override { return stream_->descriptor(); }
  std::size_t window() const override { return stream_->window(); }
  ssize_t receive(std::span<const iovec> to) override { return stream_->receive(to); }
  ssize_t send(std::span<const iovec> from) override {
    return times_ > 0 && times_-- > 0 ? 0 : stream_->send(from);
  }
  void cut() override { stream_->cut(); }

 private:
  const std::unique_ptr<ByteStream> stream_;
  int& times_;
};

MessageOptions no_options() {
  MessageOptions options;
  options.carrier = make_socket_carrier({.family = SocketOptions::Family::kTcp});
  return options;
}

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() : core_(no_options(), kSecret) {
    core_.engine = Engine::start().value();
    core_.engine->stop();  // the test serves
    Carrier& carrier = *core_.options.carrier;
    const auto listener = carrier.listen().value();
    auto stream = connected(carrier, listener->address()).value();
    auto accepted = listener->accept();
    const Turn turn(*core_.engine);
    peer_ = std::make_shared<Connection>(
        core_, std::make_unique<BusyStream>(std::move(stream), busy_times_),
        Session::connecting(kSecret), peers_);
    here_ = std::make_shared<Connection>(core_, std::move(accepted), Session::accepting(kSecret),
                                         heard_);
    EXPECT_TRUE(here_->start().is_ok());
    EXPECT_TRUE(peer_->start().is_ok());
    const Hello hello{.peer = 1, .name = "PE 1", .nonce = peer_->session().nonce()};
    const std::string text = hello.payload();
    const OutFrame greeting{hello.frame(), text.data()};
    EXPECT_TRUE(peer_->submit({&greeting, 1}, nullptr).is_ok());
  }
  ~ConnectionTest() override {
    const Turn turn(*core_.engine);
    here_->close();
    if (peer_ != nullptr) peer_->close();
  }
  template <typename Done>
  bool serve_until(Done done) MEMSPAN_REQUIRES(core_.engine->turn) {
    return core_.engine->wait(done, Deadline::after(kPromise)).is_ok();
  }
  // The peer says goodbye and goes. Afterwards nothing can be sent to it.
  void end_peer() MEMSPAN_REQUIRES(core_.engine->turn) {
    ASSERT_TRUE(peer_->submit({&kBye, 1}, nullptr).is_ok());
    peer_->close();
    peer_.reset();
    // The first bytes make the peer's kernel answer that no process is there.
    ASSERT_TRUE(here_->submit({&kBye, 1}, nullptr).is_ok());
  }

  // Sixteen, more than a connection holds.
  void submit_puts() MEMSPAN_REQUIRES(core_.engine->turn) {
    const std::vector<OutFrame> puts(16, put());
    ASSERT_TRUE(peer_->submit(puts, &parcel_).is_ok());
    ASSERT_GT(parcel_.frames, 1U);
  }
  OutFrame put() const {
    return {{.type = FrameType::kPut,
             .payload = static_cast<std::uint32_t>(payload_.size()),
             .region = {}},
            payload_.data()};
  }
  // A frame that is sent later is damaged.
  void overwrite_payload() { std::fill(payload_.begin(), payload_.end(), std::byte{0}); }

  std::vector<std::byte> payload_ = std::vector<std::byte>(1 << 20, std::byte{0x5a});
  Parcel parcel_;  // of submit_puts()
  int busy_times_ = 0;
  Heard peers_;
  Heard heard_;
  MessageCore core_;
  std::shared_ptr<Connection> peer_;
  std::shared_ptr<Connection> here_;
};

TEST_F(ConnectionTest, APeersLastFramesAreHandledAfterASendThatFailed) {
  const Turn turn(*core_.engine);
  end_peer();
  const OutFrame out = put();
  EXPECT_TRUE(serve_until([&] {
    EXPECT_TRUE(here_->submit({&out, 1}, &parcel_).is_ok());
    return heard_.ended.has_value();
  }));
  EXPECT_EQ(heard_.ended->code(), Code::kPeerLost);
  EXPECT_EQ(heard_.goodbyes, 1);
  EXPECT_FALSE(here_->has_unsent());
}

TEST_F(ConnectionTest, AGoodbyeArrivesAlthoughTheStreamIsBusyForAMoment) {
  const Turn turn(*core_.engine);
  busy_times_ = 2;
  ASSERT_TRUE(peer_->submit({&kBye, 1}, nullptr).is_ok());
  EXPECT_TRUE(serve_until([&] { return heard_.goodbyes == 1; }));
}

// More than a connection holds; the receiver is slower.
TEST_F(ConnectionTest, PayloadsStayWithTheirCallerUntilTheyAreSent) {
  const Turn turn(*core_.engine);
  submit_puts();
  EXPECT_TRUE(serve_until([&] { return parcel_.frames == 0; }));
  overwrite_payload();
  EXPECT_TRUE(serve_until([&] { return heard_.puts == 16; }));
  EXPECT_FALSE(heard_.is_damaged);
}

TEST_F(ConnectionTest, WithdrawnFramesAreNotSentAndTheConnectionIsIntact) {
  const Turn turn(*core_.engine);
  submit_puts();
  peer_->withdraw(parcel_);
  overwrite_payload();
  ASSERT_TRUE(peer_->submit({&kBye, 1}, nullptr).is_ok());
  EXPECT_TRUE(serve_until([&] { return heard_.goodbyes == 1; }));
  EXPECT_LT(heard_.puts, 16);
  EXPECT_FALSE(heard_.is_damaged);
  EXPECT_FALSE(heard_.ended.has_value());
}

TEST_F(ConnectionTest, ControlGoesBeforeWhatWaits) {
  const Turn turn(*core_.engine);
  submit_puts();
  ASSERT_TRUE(peer_->submit_control(kBye).is_ok());
  EXPECT_TRUE(serve_until([&] { return heard_.goodbyes == 1; }));
  EXPECT_LT(heard_.puts, 16);
  EXPECT_TRUE(serve_until([&] { return heard_.puts == 16; }));
  EXPECT_EQ(parcel_.frames, 0U);
  EXPECT_FALSE(heard_.is_damaged);
}

TEST_F(ConnectionTest, AnswersAndRequestsTakeTurns) {
  const Turn turn(*core_.engine);
  submit_puts();
  const std::vector<OutFrame> answers(4, {{.type = FrameType::kFlushed, .region = {}}, nullptr});
  ASSERT_TRUE(peer_->submit(answers, nullptr).is_ok());
  EXPECT_TRUE(serve_until([&] { return heard_.answers == 1; }));
  EXPECT_LT(heard_.puts, 16);
  const int puts = heard_.puts;
  EXPECT_TRUE(serve_until([&] { return heard_.answers == 4; }));
  EXPECT_GT(heard_.puts, puts);
  EXPECT_TRUE(serve_until([&] { return heard_.puts == 16; }));
  EXPECT_FALSE(heard_.is_damaged);
}

TEST_F(ConnectionTest, ControlIsBounded) {
  const Turn turn(*core_.engine);
  submit_puts();
  Status sent;
  for (int i = 0; i < 20 && sent.is_ok(); ++i) sent = peer_->submit_control(put());
  EXPECT_EQ(sent.code(), Code::kPeerLost) << sent.to_string();
  peer_->withdraw(parcel_);
}

TEST_F(ConnectionTest, WhatIsCopiedIsBounded) {
  const Turn turn(*core_.engine);
  const OutFrame out = put();
  Status sent;
  for (int i = 0; i < 200 && sent.is_ok(); ++i) sent = peer_->submit({&out, 1}, nullptr);
  EXPECT_EQ(sent.code(), Code::kPeerLost) << sent.to_string();
}

}  // namespace
}  // namespace memspan
