// SPDX-License-Identifier: Apache-2.0
// A store whose process may have little memory, and members who try to use it up: their sessions
// end, and the others' work goes on.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "modes.h"
#include "store/recipes/store_group.h"
#include "tls_peer.h"

namespace memspan {
namespace {

constexpr std::size_t kRoom = std::size_t{400} << 20;

// What this process has mapped, which is what RLIMIT_AS bounds.
std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// The child: a store that may map kRoom more than it has. It tells its port and ends when told.
[[noreturn]] void host(const StoreSecurity& security, int port_to, int end_from) {
  const rlimit limit{mapped_bytes() + kRoom, mapped_bytes() + kRoom};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
  // Nobody here is slow but on purpose, whatever else the machine does.
  auto server = StoreServer::listen(
      {"127.0.0.1", 0}, {.security = security, .patience = {.frame = std::chrono::minutes(1)}});
  if (!server.is_ok()) ::_exit(3);
  const std::uint16_t port = (*server)->endpoint().port;
  if (::write(port_to, &port, sizeof port) != sizeof port) ::_exit(4);
  char ended = 0;
  while (::read(end_from, &ended, 1) > 0) continue;
  ::_exit(0);
}

class StoreMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kIsSanitized || kIsEmulated)
      GTEST_SKIP() << "does not apply: a sanitizer or an emulator needs more addresses than the "
                      "limit leaves";
    int port[2];
    int end[2];
    ASSERT_EQ(::pipe(port), 0);
    ASSERT_EQ(::pipe(end), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::close(end[1]);
      host(security_, port[1], end[0]);
    }
    ::close(end[0]);
    ::close(port[1]);
    end_.reset(end[1]);
    const Fd from(port[0]);
    ASSERT_EQ(::read(from.get(), &endpoint_.port, sizeof endpoint_.port), 2);
  }
  void TearDown() override {
    end_.reset();
    if (child_ <= 0) return;
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    EXPECT_TRUE(WIFEXITED(status)) << "the store's process ended by signal " << WTERMSIG(status);
  }
  std::unique_ptr<StoreClient> join() const {
    auto client = StoreClient::connect(
        {.endpoint = endpoint_, .security = security_, .member = "a member"}, soon());
    EXPECT_TRUE(client.is_ok()) << client.status().to_string();
    return client.is_ok() ? std::move(client).value() : nullptr;
  }
  // A member that says what it likes, as far as it has the secret.
  Stranger hostile() const {
    auto connection = connect_tcp(endpoint_, soon());
    auto tls = TlsContext::from_secret(TlsContext::Side::kClient, security_.secret);
    auto stream = (*tls)->open(std::move(connection->socket), "127.0.0.1");
    EXPECT_TRUE(finish_handshake(**stream, soon()).is_ok());
    Stranger peer(std::move(stream).value());
    EXPECT_TRUE(peer.send(encode(StoreHello{.member = "an enemy"})));
    EXPECT_TRUE(peer.is_welcomed());
    return peer;
  }
  // The last thing that the store says to it.
  static std::string farewell(Stranger& peer) {
    std::string last;
    for (std::string body = peer.receive(); !body.empty(); body = peer.receive())
      if (auto answer = decode_answer(body); answer.is_ok() && answer->id == kFarewellId)
        last = answer->message;
    return last;
  }

  const StoreSecurity security_{.kind = StoreSecurity::Kind::kSecret,
                                .secret = "the secret of this very test"};
  Endpoint endpoint_{"127.0.0.1", 0};

 private:
  pid_t child_ = -1;
  Fd end_;
};

// Two members who work as long as this lives: keys, waits for each other, and a group.
class Bystanders {
 public:
  Bystanders(std::unique_ptr<StoreClient> one, std::unique_ptr<StoreClient> other)
      : clients_{std::move(one), std::move(other)} {
    for (int rank : {0, 1}) threads_.emplace_back([this, rank] { work(rank); });
  }
  ~Bystanders() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
    EXPECT_GT(rounds_.load(), 0);
  }
  Bystanders(const Bystanders&) = delete;
  Bystanders& operator=(const Bystanders&) = delete;
  // Returns after at least one more whole round of both.
  void work_on() const {
    for (const int until = rounds_ + 3; rounds_ < until && !has_failed_;) std::this_thread::yield();
  }

 private:
  // Both leave after the same round: what rank 0 says in the group counts.
  void work(int rank) {
    StoreClient& store = *clients_[rank];
    StoreGroup group(store, "bystanders", rank, 2);
    const auto key = [](int of, int round) { return fmt::format("{}/{}", of, round % 8); };
    for (int round = 0; !has_failed_; ++round) {
      expect(store.set(key(rank, round), std::string(1000, 'v'), soon()));
      for (int of : {0, 1}) expect(store.get(key(of, round), soon()).status());
      auto parts = group.allgather(is_over_ ? "over" : "", soon());
      expect(parts.status());
      if (!parts.is_ok() || parts->front() == "over") return;
      ++rounds_;
    }
  }
  void expect(const Status& status) {
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    if (!status.is_ok()) has_failed_ = true;
  }

  std::unique_ptr<StoreClient> clients_[2];
  std::atomic<bool> is_over_{false};     // pairs with nothing: looked at now and then
  std::atomic<bool> has_failed_{false};  // the same
  std::atomic<int> rounds_{0};           // the same
  std::vector<std::thread> threads_;
};

TEST_F(StoreMemoryTest, AWatcherThatDoesNotReadIsDropped) {
  auto setter = join();
  Bystanders others(join(), join());
  Stranger watcher = hostile();
  for (std::uint64_t id = 1; id <= 400; ++id)
    ASSERT_TRUE(watcher.send(
        encode(StoreRequest{.id = id, .operation = StoreOperation::kWatch, .key = ""})));
  std::string value(kMaxValueBytes, 'v');
  for (int i = 0; i < 12; ++i) {
    value[0] = static_cast<char>('a' + i);
    const Status status = setter->set("large", value, soon());
    ASSERT_TRUE(status.is_ok()) << status.to_string();
  }
  EXPECT_NE(farewell(watcher).find("unread"), std::string::npos);
  others.work_on();
}

TEST_F(StoreMemoryTest, SoManyWaitsAreKeptAndNoMore) {
  Bystanders others(join(), join());
  constexpr std::uint64_t kLast = 6000;
  Stranger waiter = hostile();
  std::size_t refused = 0;
  for (std::uint64_t i = 1; i < kLast; ++i) {
    const std::size_t length = i % 20 == 0 ? 8 : kMaxKeyBytes;
    ASSERT_TRUE(waiter.send(encode(StoreRequest{.id = i,
                                                .operation = StoreOperation::kGet,
                                                .key = std::string(length, 'w'),
                                                .timeout_ms = kNoTimeout})));
  }
  // What is refused is said at once, and a ping comes after all of them.
  ASSERT_TRUE(waiter.send(encode(StoreRequest{.id = kLast, .operation = StoreOperation::kPing})));
  for (;;) {
    auto answer = decode_answer(waiter.receive());
    ASSERT_TRUE(answer.is_ok());
    if (answer->id == kLast) break;
    EXPECT_EQ(answer->code, Code::kOutOfMemory) << answer->message;
    ++refused;
  }
  EXPECT_GT(refused, 100U);
  others.work_on();
}

// There is room for a gigabyte by the store's own limits, and far less in its process.
TEST_F(StoreMemoryTest, WhoUsesUpTheMemoryGoesAlone) {
  Bystanders others(join(), join());
  for (int round = 0; round < 2; ++round) {
    Stranger hoarder = hostile();
    StoreRequest request{.operation = StoreOperation::kSet,
                         .key = "",
                         .value = std::string(kMaxValueBytes, 'v'),
                         .is_owned = true};
    bool is_there = true;
    for (std::uint64_t i = 1; is_there && i <= 100; ++i) {
      request.id = i;
      request.key = fmt::format("hoard/{}", i);
      is_there = hoarder.send(encode(request));
    }
    EXPECT_FALSE(is_there);
    EXPECT_NE(farewell(hoarder).find("no memory"), std::string::npos);
    others.work_on();
  }
}

}  // namespace
}  // namespace memspan
