// SPDX-License-Identifier: Apache-2.0
// A host that lets connections wait for ever: nothing else waits for it.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "contract/transport/owner_process.h"
#include "core/interrupt.h"
#include "core/mutex.h"
#include "core/random.h"

namespace memspan::contract {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int kDeaf = 2;
constexpr auto kLimit = milliseconds(200);
constexpr auto kSoon = std::chrono::seconds(5);  // of what does not wait, on a machine under load

// A listener whose queue is full.
class DeafHost {
 public:
  explicit DeafHost(bool is_unix) {
    sockaddr_storage address{};
    socklen_t length = 0;
    if (is_unix) {
      auto* at = reinterpret_cast<sockaddr_un*>(&address);
      const std::string name = "memspan-deaf-" + random_hex(8);
      at->sun_family = AF_UNIX;
      std::memcpy(at->sun_path + 1, name.data(), name.size());
      length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
      address_ = "unix:" + name;
    } else {
      auto* at = reinterpret_cast<sockaddr_in*>(&address);
      at->sin_family = AF_INET;
      at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      length = sizeof *at;
    }
    listener_ = socket(address.ss_family, 0);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    if (!is_unix) {
      EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
      address_ = "tcp:127.0.0.1:" +
                 std::to_string(ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port));
    }
    for (bool is_full = false; !is_full;) {
      waiting_.push_back(socket(address.ss_family, SOCK_NONBLOCK));
      is_full =
          ::connect(waiting_.back().get(), reinterpret_cast<sockaddr*>(&address), length) != 0;
    }
  }
  const std::string& address() const { return address_; }

 private:
  static Fd socket(int family, int how) { return Fd(::socket(family, SOCK_STREAM | how, 0)); }

  Fd listener_;
  std::vector<Fd> waiting_;
  std::string address_;
};

class DeafHostTest : public testing::TestWithParam<Backend> {
 protected:
  void start(Duration connect_limit) {
    MessageOptions options = message_options(GetParam(), kUser);
    options.connect_limit = connect_limit;
    options.handlers.on_peer_lost = [this](int peer, const Status& why) {
      MutexLock lock(mutex_);
      lost_ += std::to_string(peer) + " " + why.to_string() + ";";
    };
    transport_ = MessageTransport::make(std::move(options)).value();
    const std::string key =
        GetParam() == Backend::kMessageTls ? "tls:" + std::string(64, '0') + ":" : "";
    const std::string address = std::string(32, '0') + "/" + key + host_.address();
    link_ = transport_->connect({kDeaf, "PE 2 on host c", address});
  }
  std::string lost() {
    MutexLock lock(mutex_);
    return lost_;
  }
  Status put(std::uint64_t value) {
    return link_->put(context_, {region_, 0}, &value, sizeof value);
  }

  DeafHost host_{GetParam() == Backend::kMessageUnix};
  const RemoteRegion region_{{1, 1}, 4096, MemoryKind::kHost, {}};
  OperationContext context_;
  Mutex mutex_;
  std::string lost_ MEMSPAN_GUARDED_BY(mutex_);
  std::unique_ptr<MessageTransport> transport_;
  std::unique_ptr<Link> link_;
};

TEST_P(DeafHostTest, PostsDoNotWaitAndOtherPeersAreServed) {
  OwnerProcess owner(GetParam());  // before this process has threads
  start(std::chrono::hours(1));
  const auto begin = Clock::now();
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(link_->post({i}, {}).is_ok());
  EXPECT_LT(Clock::now() - begin, kSoon);
  const auto other = transport_->connect(owner.address());
  std::uint64_t value = 7;
  ASSERT_TRUE(other->put(context_, {owner.region(), 0}, &value, sizeof value).is_ok());
  ASSERT_TRUE(other->quiet(context_).is_ok());
  EXPECT_EQ(owner.memory<std::uint64_t>(0), 7U);
  EXPECT_LT(Clock::now() - begin, kSoon);
  EXPECT_EQ(lost(), "");
}

TEST_P(DeafHostTest, WhatWaitsForTheConnectionIsBounded) {
  start(std::chrono::hours(1));
  const std::vector<std::byte> large(std::size_t{1} << 20);
  Status posted;
  for (int i = 0; i < 10 && posted.is_ok(); ++i) posted = link_->post({}, large);
  EXPECT_EQ(posted.code(), Code::kTimeout);
  EXPECT_THAT(posted.message(), HasSubstr("PE 2 on host c has not answered yet, and "));
}

TEST_P(DeafHostTest, ACallEndsAtItsLimit) {
  start(std::chrono::hours(1));
  context_.set_limit(kLimit);
  const auto begin = Clock::now();
  EXPECT_EQ(put(1).code(), Code::kTimeout);
  std::uint64_t value = 0;
  EXPECT_EQ(link_->get(context_, &value, {region_, 0}, 8).code(), Code::kTimeout);
  EXPECT_EQ(link_->quiet(context_).code(), Code::kTimeout);
  EXPECT_EQ(link_->send({}, {}, Deadline::after(kLimit)).code(), Code::kTimeout);
  EXPECT_GE(Clock::now() - begin, 4 * kLimit);
  EXPECT_LT(Clock::now() - begin, 4 * kLimit + kSoon);
}

TEST_P(DeafHostTest, AnInterruptedCallEnds) {
  start(std::chrono::hours(1));
  set_thread_interrupt_handler([] { return 1; });
  EXPECT_EQ(put(1).message(), interruption().message());
  set_thread_interrupt_handler(nullptr);
}

TEST_P(DeafHostTest, IsLostAfterTheLimitOfConnecting) {
  start(kLimit);
  ASSERT_TRUE(link_->post({}, {}).is_ok());
  const Deadline deadline = Deadline::after(kSoon);
  while (lost().empty() && !deadline.has_passed()) std::this_thread::yield();
  EXPECT_THAT(lost(),
              HasSubstr("2 PEER_LOST: PE 2 on host c: connecting: it has not answered for "));
  EXPECT_EQ(link_->post({}, {}).code(), Code::kPeerLost);
  EXPECT_EQ(put(1).code(), Code::kPeerLost);
}

TEST_P(DeafHostTest, ACallThatWaitsEndsWithTheLoss) {
  start(std::chrono::hours(1));
  std::thread caller([&] { EXPECT_EQ(put(1).code(), Code::kPeerLost); });
  ASSERT_TRUE(link_->post({}, {}).is_ok());
  transport_->lose(kDeaf, {Code::kPeerLost, "the test says so"});
  caller.join();
}

TEST_P(DeafHostTest, TheEndDoesNotWait) {
  start(std::chrono::hours(1));
  ASSERT_TRUE(link_->post({}, {}).is_ok());
  const auto begin = Clock::now();
  link_.reset();
  transport_.reset();
  EXPECT_LT(Clock::now() - begin, kSoon);
}

INSTANTIATE_TEST_SUITE_P(Carriers, DeafHostTest,
                         testing::Values(Backend::kMessageUnix, Backend::kMessageTcp,
                                         Backend::kMessageTls),
                         [](const auto& chosen) { return std::string(name_of(chosen.param)); });

}  // namespace
}  // namespace memspan::contract
