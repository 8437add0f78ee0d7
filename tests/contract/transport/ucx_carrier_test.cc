// SPDX-License-Identifier: Apache-2.0
// What the carrier over UCX promises beyond a carrier. Registered where it is built.
#include "transport/message/ucx/ucx_carrier.h"
#include "support/connected.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <string>
#include <vector>

namespace memspan::contract {
namespace {

using testing::HasSubstr;

constexpr auto kPromise = std::chrono::seconds(10);
constexpr std::size_t kMostOnTheirWay = std::size_t{4} << 20;

class UcxCarrierTest : public testing::Test {
 protected:
  UcxCarrierTest()
      : carrier_(make_ucx_carrier({.device = "lo"}).value()),
        listener_(carrier_->listen().value()) {}

  // Two ends of a connection, which share one worker.
  void open() {
    const auto opening = carrier_->connect(listener_->address()).value();
    const Deadline deadline = Deadline::after(kPromise);
    near_ = nullptr;
    far_ = nullptr;
    while ((near_ == nullptr || far_ == nullptr) && !deadline.has_passed()) {
      if (near_ == nullptr) near_ = opening->step().value();
      if (far_ == nullptr) far_ = listener_->accept();
    }
    ASSERT_NE(near_, nullptr);
    ASSERT_NE(far_, nullptr);
    near_->on_change([this] { ++near_changes_; });
    far_->on_change([this] { ++far_changes_; });
  }
  static ssize_t send(ByteStream& stream, std::vector<char>& bytes) {
    const iovec part{bytes.data(), bytes.size()};
    return send_shortly(stream, {&part, 1});
  }
  static ssize_t receive(ByteStream& stream, std::vector<char>& bytes) {
    const iovec part{bytes.data(), bytes.size()};
    return receive_shortly(stream, {&part, 1});
  }

  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<ByteStream> near_;
  std::unique_ptr<ByteStream> far_;
  int near_changes_ = 0;
  int far_changes_ = 0;
};

TEST_F(UcxCarrierTest, ANetworkThatIsNotTrustedIsNeitherListenedAtNorConnectedTo) {
  const auto there = carrier_->connect("ucx:192.0.2.9:7");
  EXPECT_EQ(there.code(), Code::kAuth);
  EXPECT_THAT(there.status().message(), HasSubstr("192.0.2.9"));
  auto other = make_ucx_carrier({.host = "192.0.2.9", .device = "lo"}).value();
  EXPECT_EQ(other->listen().code(), Code::kAuth);
}

TEST_F(UcxCarrierTest, AnAddressOfAnotherCarrierIsNamed) {
  for (const char* address : {"tcp:127.0.0.1:7", "unix:memspan-x", "ucx:", "ucx:127.0.0.1:port"}) {
    const auto there = carrier_->connect(address);
    EXPECT_EQ(there.code(), Code::kInvalidArgument) << address;
  }
  EXPECT_THAT(carrier_->connect("tcp:127.0.0.1:7").status().message(),
              HasSubstr("MEMSPAN_CARRIER"));
}

TEST_F(UcxCarrierTest, SignalHandlersStayTheProgramsOwn) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGHUP, SIGABRT}) {
    struct sigaction now = {};
    ASSERT_EQ(::sigaction(signal, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << signal;
  }
}

TEST_F(UcxCarrierTest, NoMoreIsOnTheWayThanTheReceiverTakes) {
  open();
  std::vector<char> bytes(kMostOnTheirWay, 'x');
  std::size_t sent = 0;
  for (ssize_t now = 1; now > 0; sent += static_cast<std::size_t>(now)) now = send(*near_, bytes);
  EXPECT_LE(sent, kMostOnTheirWay);
  EXPECT_GT(sent, kMostOnTheirWay * 7 / 8);
  EXPECT_EQ(near_changes_, 0);
  // What is taken makes room.
  std::size_t received = 0;
  const Deadline deadline = Deadline::after(kPromise);
  while (received < sent && !deadline.has_passed()) {
    const ssize_t now = receive(*far_, bytes);
    ASSERT_GE(now, 0);
    received += static_cast<std::size_t>(now);
  }
  EXPECT_EQ(received, sent);
  ssize_t again = 0;
  while ((again = send(*near_, bytes)) == 0 && !deadline.has_passed()) continue;
  EXPECT_GT(again, 0);
  EXPECT_GT(near_changes_, 0);
}

TEST_F(UcxCarrierTest, TheListenersDescriptorShowsWhatCame) {
  open();
  std::vector<char> bytes(100, 'w');
  while (!listener_->prepare_sleep()) listener_->accept();
  pollfd one{listener_->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  far_changes_ = 0;
  ASSERT_EQ(send(*near_, bytes), 100);
  EXPECT_EQ(::poll(&one, 1, 10'000), 1);
  const Deadline deadline = Deadline::after(kPromise);
  while (far_changes_ == 0 && !deadline.has_passed()) listener_->accept();
  EXPECT_EQ(far_changes_, 1);
  EXPECT_TRUE(far_->has_buffered());
  EXPECT_EQ(receive(*far_, bytes), 100);
}

TEST_F(UcxCarrierTest, WhatWasSentBeforeTheEndIsThere) {
  open();
  std::vector<char> bytes(std::size_t{3} << 20, 'y');
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    std::vector<char> rest(bytes.begin() + static_cast<std::ptrdiff_t>(sent), bytes.end());
    const ssize_t now = send(*near_, rest);
    ASSERT_GE(now, 0);
    sent += static_cast<std::size_t>(now);
  }
  near_.reset();
  std::size_t received = 0;
  const Deadline deadline = Deadline::after(kPromise);
  ssize_t now = 0;
  while (now >= 0 && !deadline.has_passed()) {
    now = receive(*far_, bytes);
    if (now > 0) received += static_cast<std::size_t>(now);
  }
  EXPECT_EQ(now, -1);
  EXPECT_EQ(received, sent);
  EXPECT_GT(far_changes_, 0);
  EXPECT_EQ(send(*far_, bytes), -1);
}

// Sizes around what is large, read in other sizes.
TEST_F(UcxCarrierTest, BytesKeepTheirOrder) {
  open();
  constexpr std::size_t kLarge = std::size_t{64} << 10;
  const std::vector<std::size_t> sizes = {1,          kLarge - 1,     kLarge, 7,      kLarge + 1,
                                          4 * kLarge, 4 * kLarge + 1, 100,    3 << 20};
  std::vector<char> sent;
  std::vector<char> received;
  std::vector<char> buffer(100'000);
  const Deadline deadline = Deadline::after(kPromise);
  for (const std::size_t size : sizes) {
    std::vector<char> piece(size);
    for (std::size_t i = 0; i < size; ++i) piece[i] = static_cast<char>((sent.size() + i) % 113);
    sent.insert(sent.end(), piece.begin(), piece.end());
    while (!piece.empty() && !deadline.has_passed()) {
      const ssize_t now = send(*near_, piece);
      ASSERT_GE(now, 0);
      piece.erase(piece.begin(), piece.begin() + now);
      const ssize_t got = receive(*far_, buffer);
      ASSERT_GE(got, 0);
      received.insert(received.end(), buffer.begin(), buffer.begin() + got);
    }
  }
  while (received.size() < sent.size() && !deadline.has_passed()) {
    const ssize_t got = receive(*far_, buffer);
    ASSERT_GE(got, 0);
    received.insert(received.end(), buffer.begin(), buffer.begin() + got);
  }
  EXPECT_EQ(received, sent);
}

// UCX sends messages of some sizes in other ways.
TEST_F(UcxCarrierTest, MessagesOfAllSmallSizesArrive) {
  open();
  std::vector<char> buffer(10'000);
  for (std::size_t size = 1; size < buffer.size(); size += size < 300 ? 1 : 3) {
    std::vector<char> piece(size, static_cast<char>(size % 113));
    ASSERT_EQ(send(*near_, piece), std::ssize(piece));
    std::size_t got = 0;
    const Deadline deadline = Deadline::after(kPromise);
    while (got < size && !deadline.has_passed()) {
      const ssize_t now = receive(*far_, buffer);
      ASSERT_GE(now, 0);
      got += static_cast<std::size_t>(now);
    }
    ASSERT_EQ(got, size);
    ASSERT_EQ(buffer[0], piece.back());
  }
}

TEST_F(UcxCarrierTest, ACutInTheMiddleIsSeenByTheOtherEndAndNoOtherConnection) {
  std::vector<char> bytes(kMostOnTheirWay, 'z');
  std::vector<char> part(100'000);
  for (int round = 0; round < 10; ++round) {
    open();
    ASSERT_GT(send(*near_, bytes), 0);
    const Deadline deadline = Deadline::after(kPromise);
    while (receive(*far_, part) == 0 && !deadline.has_passed()) continue;
    ByteStream& other = round % 2 == 0 ? *near_ : *far_;
    (round % 2 == 0 ? far_ : near_)->cut();
    ssize_t got = 0;
    while (got >= 0 && !deadline.has_passed()) got = receive(other, part);
    EXPECT_EQ(got, -1) << round;
  }
}

}  // namespace
}  // namespace memspan::contract
