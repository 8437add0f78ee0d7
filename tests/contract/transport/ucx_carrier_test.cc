// SPDX-License-Identifier: Apache-2.0
// What the carrier over UCX promises beyond a carrier. Registered where it is built.
#include "transport/message/ucx/ucx_carrier.h"
#include "support/connected.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace memspan::contract {
namespace {

using testing::HasSubstr;

constexpr auto kPromise = std::chrono::seconds(10);
constexpr std::size_t kMostOnTheirWay = std::size_t{4} << 20;

class UcxCarrierTest : public testing::TestWithParam<UcxOptions::Rendezvous> {
 protected:
  UcxCarrierTest()
      : carrier_(make_ucx_carrier({.device = "lo", .rendezvous = GetParam()}).value()),
        listener_(carrier_->listen().value()) {}

  // Two ends of a connection, which share one worker.
  void open() {
    std::thread connecting([this] { near_ = connected(*carrier_, listener_->address()).value(); });
    const Deadline deadline = Deadline::after(kPromise);
    while ((far_ = listener_->accept()) == nullptr && !deadline.has_passed()) continue;
    connecting.join();
    ASSERT_NE(far_, nullptr);
  }
  static short ready(const ByteStream& stream, short events) {
    pollfd one{stream.descriptor(), events, 0};
    ::poll(&one, 1, 0);
    return one.revents;
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
};

TEST_P(UcxCarrierTest, ANetworkThatIsNotTrustedIsNeitherListenedAtNorConnectedTo) {
  const auto there = carrier_->connect("ucx:192.0.2.9:7");
  EXPECT_EQ(there.code(), Code::kAuth);
  EXPECT_THAT(there.status().message(), HasSubstr("192.0.2.9"));
  auto other = make_ucx_carrier({.host = "192.0.2.9", .device = "lo"}).value();
  EXPECT_EQ(other->listen().code(), Code::kAuth);
}

TEST_P(UcxCarrierTest, AnAddressOfAnotherCarrierIsNamed) {
  for (const char* address : {"tcp:127.0.0.1:7", "unix:memspan-x", "ucx:", "ucx:127.0.0.1:port"}) {
    const auto there = carrier_->connect(address);
    EXPECT_EQ(there.code(), Code::kInvalidArgument) << address;
  }
  EXPECT_THAT(carrier_->connect("tcp:127.0.0.1:7").status().message(),
              HasSubstr("MEMSPAN_CARRIER"));
}

TEST_P(UcxCarrierTest, SignalHandlersStayTheProgramsOwn) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGHUP, SIGABRT}) {
    struct sigaction now = {};
    ASSERT_EQ(::sigaction(signal, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << signal;
  }
}

TEST_P(UcxCarrierTest, NoMoreIsOnTheWayThanTheReceiverTakes) {
  open();
  std::vector<char> bytes(kMostOnTheirWay, 'x');
  std::size_t sent = 0;
  EXPECT_NE(ready(*near_, POLLOUT) & POLLOUT, 0);
  for (ssize_t now = 1; now > 0; sent += static_cast<std::size_t>(now)) now = send(*near_, bytes);
  EXPECT_EQ(sent, kMostOnTheirWay);
  EXPECT_EQ(ready(*near_, POLLOUT) & POLLOUT, 0) << "nothing can be sent";
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
  EXPECT_NE(ready(*near_, POLLOUT) & POLLOUT, 0);
}

TEST_P(UcxCarrierTest, WhatWasSentBeforeTheEndIsThere) {
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
  EXPECT_NE(ready(*far_, POLLRDHUP) & (POLLRDHUP | POLLHUP), 0);
  EXPECT_EQ(send(*far_, bytes), -1);
}

// Sizes around what is large, read in other sizes.
TEST_P(UcxCarrierTest, BytesKeepTheirOrder) {
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

TEST_P(UcxCarrierTest, ACutInTheMiddleIsSeenByTheOtherEndAndNoOtherConnection) {
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

INSTANTIATE_TEST_SUITE_P(Payloads, UcxCarrierTest,
                         testing::Values(UcxOptions::Rendezvous::kNever,
                                         UcxOptions::Rendezvous::kAlways),
                         [](const auto& one) {
                           const bool is_always = one.param == UcxOptions::Rendezvous::kAlways;
                           return std::string(is_always ? "rendezvous" : "streams");
                         });

}  // namespace
}  // namespace memspan::contract
