// SPDX-License-Identifier: Apache-2.0
// What the carrier under TLS promises beyond a carrier: who sits on the wire reads nothing and
// changes nothing, and nobody goes there plainly by mistake.
#include "world/carrier_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "support/connected.h"
#include "transport/message/socket/socket_carrier.h"

namespace memspan::contract {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kPromise = std::chrono::seconds(10);
constexpr std::string_view kWords = "what nobody else may read";

std::unique_ptr<Carrier> plain_carrier() {
  return make_socket_carrier({.family = SocketOptions::Family::kTcp});
}
std::unique_ptr<Carrier> carrier(bool encrypts) {
  return make_encrypted_carrier(plain_carrier(), encrypts);
}

std::unique_ptr<ByteStream> accept(Listener& listener) {
  pollfd one{listener.descriptor(), POLLIN, 0};
  constexpr int kPromiseMs = std::chrono::milliseconds(kPromise).count();
  EXPECT_EQ(::poll(&one, 1, kPromiseMs), 1);
  return listener.accept();
}

bool send_all(ByteStream& stream, std::string_view bytes) {
  const Deadline deadline = Deadline::after(kPromise);
  while (!bytes.empty() && !deadline.has_passed()) {
    const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    const ssize_t sent = send_shortly(stream, {&part, 1});
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return bytes.empty();
}

// Until so many bytes are there, or the end.
std::string receive(ByteStream& stream, std::size_t bytes) {
  std::string all;
  const Deadline deadline = Deadline::after(kPromise);
  while (all.size() < bytes && !deadline.has_passed()) {
    std::string room(bytes - all.size(), ' ');
    const iovec part{room.data(), room.size()};
    const ssize_t got = receive_shortly(stream, {&part, 1});
    if (got < 0) break;
    all.append(room, 0, static_cast<std::size_t>(got));
  }
  return all;
}

// Two ends, moved by this thread and another. Made with braces: who accepts comes second.
class Ends {
 public:
  Ends(std::unique_ptr<ByteStream> near_end, std::unique_ptr<ByteStream> far_end)
      : near_(std::move(near_end)), far_(std::move(far_end)) {}
  // What comes out at the far end.
  std::string carry(std::string_view bytes) {
    std::string got;
    std::thread receiving([&] { got = receive(*far_, bytes.size()); });
    send_all(*near_, bytes);
    receiving.join();
    return got;
  }
  ByteStream& far_end() { return *far_; }

 private:
  std::unique_ptr<ByteStream> near_;
  std::unique_ptr<ByteStream> far_;
};

std::string with_port_of(const std::string& address, const std::string& there) {
  const std::size_t plain = address.rfind("tcp:");
  return address.substr(0, plain) + there;
}

// Passes on what comes, and keeps it; may change a byte of what is not a handshake.
class Wire {
 public:
  explicit Wire(const std::string& to)
      : listener_(plain_carrier()->listen().value()), to_(to), thread_([this] { run(); }) {}
  ~Wire() {
    ends_ = true;
    thread_.join();
  }
  std::string address() const { return listener_->address(); }
  void change() { changes_ = true; }
  std::string seen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return seen_;
  }

 private:
  void run() {
    auto near_end = accept(*listener_);
    auto far_end = connected(*plain_carrier(), to_).value();
    while (!ends_ && pass(*near_end, *far_end) && pass(*far_end, *near_end)) continue;
    near_end->cut();
    far_end->cut();
  }
  bool pass(ByteStream& from, ByteStream& to) {
    char bytes[65536];
    const iovec part{bytes, sizeof bytes};
    const ssize_t got = receive_shortly(from, {&part, 1});
    if (got < 0) return false;
    if (got > 0 && changes_) bytes[got - 1] = static_cast<char>(bytes[got - 1] ^ 1);
    const std::string_view passed(bytes, static_cast<std::size_t>(got));
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_ += passed;
    return send_all(to, passed);
  }

  const std::unique_ptr<Listener> listener_;
  const std::string to_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> changes_{false};
  std::mutex mutex_;
  std::string seen_;
  std::thread thread_;
};

class EncryptedCarrierTest : public testing::Test {
 protected:
  EncryptedCarrierTest() : carrier_(carrier(true)), listener_(carrier_->listen().value()) {}
  std::string key() const { return listener_->address().substr(4, 64); }
  std::string plain_address() const {
    return listener_->address().substr(listener_->address().rfind("tcp:"));
  }

  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(EncryptedCarrierTest, WhoSitsOnTheWireReadsNothing) {
  Wire wire(plain_address());
  auto near_end = connected(*carrier_, with_port_of(listener_->address(), wire.address()));
  ASSERT_TRUE(near_end.is_ok()) << near_end.status().to_string();
  Ends ends{std::move(near_end).value(), accept(*listener_)};
  EXPECT_EQ(ends.carry(kWords), kWords);
  EXPECT_GT(wire.seen().size(), kWords.size());
  EXPECT_THAT(wire.seen(), Not(HasSubstr(std::string(kWords))));
  EXPECT_THAT(wire.seen(), Not(HasSubstr(key())));
}

TEST_F(EncryptedCarrierTest, WhatIsChangedOnTheWireDoesNotArrive) {
  Wire wire(plain_address());
  auto near_end = connected(*carrier_, with_port_of(listener_->address(), wire.address()));
  ASSERT_TRUE(near_end.is_ok());
  Ends ends{std::move(near_end).value(), accept(*listener_)};
  ASSERT_EQ(ends.carry(kWords), kWords);
  wire.change();
  EXPECT_EQ(ends.carry(kWords), "");
}

TEST_F(EncryptedCarrierTest, WhoGuessesTheKeyGetsNothingThrough) {
  const std::string guess = "tls:" + std::string(64, '0') + ":" + plain_address();
  auto near_end = connected(*carrier_, guess);
  ASSERT_TRUE(near_end.is_ok());
  Ends ends{std::move(near_end).value(), accept(*listener_)};
  EXPECT_EQ(ends.carry(kWords), "");
}

TEST_F(EncryptedCarrierTest, WhoSpeaksPlainlyGetsNothingThrough) {
  auto near_end = connected(*plain_carrier(), plain_address());
  ASSERT_TRUE(near_end.is_ok());
  Ends ends{std::move(near_end).value(), accept(*listener_)};
  EXPECT_EQ(ends.carry(kWords), "");
}

TEST_F(EncryptedCarrierTest, BothSidesNameAnEncryptionThatOnlyOneHas) {
  const auto never = carrier(false);
  const auto to_plain = carrier_->connect(plain_address());
  EXPECT_EQ(to_plain.code(), Code::kAuth);
  EXPECT_THAT(to_plain.status().message(),
              HasSubstr("MEMSPAN_ENCRYPT_DATA is 1 in this process and not in that one"));
  const auto to_encrypted = never->connect(listener_->address());
  EXPECT_EQ(to_encrypted.code(), Code::kAuth);
  EXPECT_THAT(to_encrypted.status().message(),
              HasSubstr("MEMSPAN_ENCRYPT_DATA is 1 in that process and not in this one"));
}

TEST_F(EncryptedCarrierTest, ProcessesWithoutEncryptionSpeakPlainly) {
  const auto never = carrier(false);
  const auto plain = never->listen().value();
  EXPECT_EQ(plain->address().rfind("tcp:", 0), 0u);
  Ends ends{connected(*never, plain->address()).value(), accept(*plain)};
  EXPECT_EQ(ends.carry(kWords), kWords);
}

TEST_F(EncryptedCarrierTest, ManyRecordsComeWholeAndInOrder) {
  Ends ends{connected(*carrier_, listener_->address()).value(), accept(*listener_)};
  std::string bytes(std::size_t{3} << 20, ' ');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
  EXPECT_TRUE(ends.far_end().is_opening());
  EXPECT_TRUE(ends.carry(bytes) == bytes);
  EXPECT_FALSE(ends.far_end().is_opening());
}

TEST_F(EncryptedCarrierTest, AnAddressOfAnotherFormIsRefused) {
  for (const char* address : {"tls:", "tls:abc", "tls:abc:tcp:127.0.0.1:1"})
    EXPECT_EQ(carrier_->connect(address).code(), Code::kInvalidArgument) << address;
}

}  // namespace
}  // namespace memspan::contract
