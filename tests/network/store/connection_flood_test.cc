// SPDX-License-Identifier: Apache-2.0
// Very many connections that come to nothing, under each protection: members notice little, others
// still join, and what is not authenticated takes little memory.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "core/bytes.h"
#include "modes.h"
#include "support/needs.h"
#include "tls_peer.h"

namespace memspan {
namespace {

class ConnectionFloodTest : public ModeTest {};

std::string number(std::uint32_t value) {
  ByteWriter writer;
  writer.u32(value);
  return writer.take();
}

// Connections to the store from one address of loopback that say `says` and nothing more.
class ConnectionFlood {
 public:
  ConnectionFlood(const Endpoint& store, const char* from, std::string says)
      : store_(store), from_(from), says_(std::move(says)) {}

  void come(std::size_t count) {
    while (sockets_.size() < count) {
      auto socket = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ASSERT_TRUE(socket.is_valid());
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      ::inet_pton(AF_INET, from_, &address.sin_addr);
      auto* generic = reinterpret_cast<sockaddr*>(&address);
      ASSERT_EQ(::bind(socket.get(), generic, sizeof address), 0);
      ::inet_pton(AF_INET, store_.host.c_str(), &address.sin_addr);
      address.sin_port = htons(store_.port);
      ::connect(socket.get(), generic, sizeof address);
      if (!says_.empty()) ::send(socket.get(), says_.data(), says_.size(), MSG_NOSIGNAL);
      sockets_.push_back(std::move(socket));
    }
  }
  // How many the store has not closed.
  std::size_t open() const {
    return static_cast<std::size_t>(
        std::count_if(sockets_.begin(), sockets_.end(), [](const Fd& socket) {
          pollfd polled{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
          return ::poll(&polled, 1, 0) == 0;
        }));
  }
  void go() { sockets_.clear(); }

 private:
  const Endpoint store_;
  const char* const from_;
  const std::string says_;
  std::vector<Fd> sockets_;
};

constexpr std::size_t kConnections = 1000;

// Both ends of a flood are in this process.
bool has_descriptors(rlim_t needed) {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return true;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= needed;
}

Duration slowest_of_hundred(StoreClient& client, const std::function<bool()>& goes_on) {
  std::vector<Duration> times;
  for (int i = 0; i < 500 || (goes_on() && times.size() < 20000); ++i) {
    const auto begin = Clock::now();
    EXPECT_TRUE(client.set("k", "v", soon()).is_ok());
    times.push_back(Clock::now() - begin);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() * 99 / 100];
}

double microseconds(Duration time) {
  return to_seconds(time) * 1e6;
}

void expect_undisturbed(const char* what, Duration quiet, Duration attacked) {
  std::printf("[ MEASURED ] %s: a request's p99 is %.0f us, unattacked %.0f us\n", what,
              microseconds(attacked), microseconds(quiet));
  // The spec's 2 is for a machine that does nothing else; below the floor this measures how other
  // programs, and the flood itself, which is in this process, get their time.
  EXPECT_LT(attacked, std::max<Duration>(20 * quiet, std::chrono::milliseconds(100)));
}

TEST_P(ConnectionFloodTest, AThousandIdleConnectionsKeepNobodyOut) {
  MEMSPAN_NEEDS("descriptors");
  ASSERT_TRUE(has_descriptors(3 * kConnections));
  start();
  auto member = join();
  const auto at_once = [] { return false; };
  const Duration quiet = slowest_of_hundred(*member, at_once);
  ConnectionFlood flood(endpoint(), "127.0.0.1", "");
  flood.come(kConnections);
  expect_undisturbed("1000 idle connections", quiet, slowest_of_hundred(*member, at_once));
  for (int i = 0; i < 20; ++i) expect_served();
  EXPECT_LE(flood.open(), StoreAdmission::Limits().per_address);
}

TEST_P(ConnectionFloodTest, AFloodOfConnectionsKeepsNobodyOut) {
  MEMSPAN_NEEDS("descriptors");
  ASSERT_TRUE(has_descriptors(3 * kConnections));
  start();
  auto member = join();
  const Duration quiet = slowest_of_hundred(*member, [] { return false; });
  std::atomic<bool> is_over{false};  // relaxed: nothing else is handed over with it
  std::thread flooding([&] {
    ConnectionFlood flood(endpoint(), "127.0.0.1", "");
    for (; !is_over.load(std::memory_order_relaxed); flood.go()) flood.come(kConnections);
  });
  auto joining = std::async(std::launch::async, [&] {
    for (int i = 0; i < 10; ++i) expect_served();
  });
  const auto goes_on = [&] {
    return joining.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  };
  const Duration attacked = slowest_of_hundred(*member, goes_on);
  joining.get();
  is_over.store(true, std::memory_order_relaxed);
  flooding.join();
  expect_undisturbed("a flood of connections", quiet, attacked);
}

// They have begun a handshake, so that they are not the first to go; but they come from elsewhere.
TEST_P(ConnectionFloodTest, AThousandHalfOpenConnectionsFromAnotherAddressKeepNobodyOut) {
  MEMSPAN_NEEDS("descriptors");
  ASSERT_TRUE(has_descriptors(3 * kConnections));
  start();
  auto member = join();
  const auto at_once = [] { return false; };
  const Duration quiet = slowest_of_hundred(*member, at_once);
  ConnectionFlood flood(endpoint(), "127.0.0.9",
                        is_plain() ? number(4000) : std::string("\x16\x03\x01", 3));
  flood.come(kConnections);
  expect_undisturbed("1000 half-open connections", quiet, slowest_of_hundred(*member, at_once));
  for (int i = 0; i < 20; ++i) expect_served();
  EXPECT_LE(flood.open(), StoreAdmission::Limits().per_address);
}

// What is taken from the heap, be it in use or not.
std::size_t heap_bytes() {
  const auto about = ::mallinfo2();
  return about.uordblks + about.hblkhd;
}

TEST_P(ConnectionFloodTest, WhoIsNotAuthenticatedCostsLittleMemory) {
  if (kIsSanitized) GTEST_SKIP() << "does not apply: a sanitizer's own memory is in the way";
  MEMSPAN_NEEDS("descriptors");
  ASSERT_TRUE(has_descriptors(3 * kConnections));
  start({.patience = {.hello = std::chrono::seconds(60)},
         .admission = {.per_address = 2 * kConnections, .in_all = 2 * kConnections}});
  expect_served();
  // A first message that is on its way, and one whose announced size OpenSSL would make room for.
  const std::string begun =
      std::string("\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03", 11) + std::string(8000, 'x');
  const std::string huge =
      std::string("\x16\x03\x01\x00\x40\x01\x02\x01\x3f\x03\x03", 11) + std::string(58, 'x');
  const std::string plain_begun = number(kMaxGreetingBytes) + std::string(4000, 'x');
  for (const std::string& says : {is_plain() ? plain_begun : begun, huge}) {
    const std::size_t before = heap_bytes();
    ConnectionFlood flood(endpoint(), "127.0.0.1", says);
    flood.come(kConnections);
    expect_served();
    const std::size_t taken = std::max(heap_bytes(), before) - before;
    std::printf("[ MEASURED ] %zu connections that are not authenticated take %zu bytes each\n",
                flood.open(), taken / kConnections);
    EXPECT_LE(taken / kConnections, std::size_t{64} << 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Under, ConnectionFloodTest,
                         testing::Values(ProtectionKind::kHostSecret, ProtectionKind::kSecret,
                                         ProtectionKind::kCertificates, ProtectionKind::kPlain),
                         mode_name);

}  // namespace
}  // namespace memspan
