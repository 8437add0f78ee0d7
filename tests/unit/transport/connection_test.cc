// SPDX-License-Identifier: Apache-2.0
#include "transport/message/connection.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "support/connected.h"
#include "transport/message/socket/socket_carrier.h"

namespace memspan {
namespace {

constexpr SipKey kSecret{1, 2};
constexpr OutFrame kBye{{.type = FrameType::kBye, .region = {}}, nullptr};

struct Heard final : FrameSink {
  Status begin(const Frame& frame) override {
    goodbyes += frame.type == FrameType::kBye ? 1 : 0;
    return Status::ok();
  }
  std::byte* pin() override { return nullptr; }
  void unpin() override {}
  Status end(const Frame&) override { return Status::ok(); }
  int goodbyes = 0;
};

// A stream that takes nothing some times, as when it is full or another thread uses it.
class BusyStream final : public ByteStream {
 public:
  BusyStream(std::unique_ptr<ByteStream> stream, int& times)
      : stream_(std::move(stream)), times_(times) {}
  int descriptor() const override { return stream_->descriptor(); }
  std::size_t window() const override { return stream_->window(); }
  ssize_t receive(std::span<const iovec> to, Waiting waiting) override {
    return stream_->receive(to, waiting);
  }
  ssize_t send(std::span<const iovec> from, Waiting waiting) override {
    return times_ > 0 && times_-- > 0 ? 0 : stream_->send(from, waiting);
  }
  void cut() override { stream_->cut(); }

 private:
  const std::unique_ptr<ByteStream> stream_;
  int& times_;
};

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    const auto carrier = make_socket_carrier({.family = SocketOptions::Family::kTcp});
    const auto listener = carrier->listen().value();
    auto connected = memspan::connected(*carrier, listener->address()).value();
    peer_ = std::make_unique<Connection>(
        std::make_unique<BusyStream>(std::move(connected), busy_times_),
        Session::connecting(kSecret), peers_words_, nullptr);
    here_ = std::make_unique<Connection>(listener->accept(), Session::accepting(kSecret), heard_,
                                         nullptr);
  }

  // Greets, says goodbye, and goes. Afterwards nothing can be sent to it.
  void end_peer() {
    const Hello hello{1, "PE 1", peer_->nonce()};
    const OutFrame greeting{hello.frame(), hello.payload().data()};
    ASSERT_TRUE(peer_->send({&greeting, 1}, SendMode::kQueue).is_ok());
    ASSERT_TRUE(peer_->send({&kBye, 1}, SendMode::kQueue).is_ok());
    peer_.reset();
    // The first bytes make the peer's kernel answer that nobody is there.
    ASSERT_TRUE(here_->send({&kBye, 1}, SendMode::kQueue).is_ok());
    pollfd broken{here_->descriptor(), 0, 0};
    ASSERT_EQ(::poll(&broken, 1, 10'000), 1);
    ASSERT_NE(broken.revents & POLLERR, 0);
  }

  // Until the end.
  Status receive_all() {
    while (true) {
      const auto received = here_->receive(Waiting::kShortly);
      if (!received.is_ok()) return received.status();
    }
  }

  int busy_times_ = 0;
  Heard peers_words_;
  Heard heard_;
  std::unique_ptr<Connection> peer_;
  std::unique_ptr<Connection> here_;
};

TEST_F(ConnectionTest, APeersLastWordsAreHeardAfterASendThatFailed) {
  end_peer();
  EXPECT_TRUE(here_->send({&kBye, 1}, SendMode::kQueue).is_ok());
  here_->send_queued();
  EXPECT_FALSE(here_->has_queued()) << "what nobody gets would be tried for ever";
  EXPECT_EQ(receive_all().code(), Code::kPeerLost);
  EXPECT_EQ(heard_.goodbyes, 1);
}

TEST_F(ConnectionTest, AGoodbyeArrivesAlthoughTheStreamIsBusyForAMoment) {
  const Hello hello{1, "PE 1", peer_->nonce()};
  const OutFrame greeting{hello.frame(), hello.payload().data()};
  ASSERT_TRUE(peer_->send({&greeting, 1}, SendMode::kQueue).is_ok());
  busy_times_ = 2;
  peer_->say_goodbye();
  peer_->cut();
  EXPECT_EQ(receive_all().code(), Code::kPeerLost);
  EXPECT_EQ(heard_.goodbyes, 1);
}

TEST_F(ConnectionTest, WhoWaitsForASendLearnsThatItFailed) {
  end_peer();
  EXPECT_EQ(here_->send({&kBye, 1}, SendMode::kWait).code(), Code::kPeerLost);
  EXPECT_EQ(receive_all().code(), Code::kPeerLost);
  EXPECT_EQ(heard_.goodbyes, 1);
}

}  // namespace
}  // namespace memspan
