// SPDX-License-Identifier: Apache-2.0
// Who watches whom: watches of keys, members and stores that fall silent, children of fork().
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "net/tcp.h"
#include "store/client.h"
#include "store/server.h"
#include "support.h"

namespace memspan {
namespace {

// Collects what a watch sees; tests wait for as many changes as they expect.
class Diary {
 public:
  Diary() = default;
  // With a client of its own.
  Diary(StoreServer& server, std::string_view prefix) : client_(client_of(server)) {
    EXPECT_TRUE(client_->watch(prefix, writer(), soon()).is_ok());
  }
  StoreWatcher writer() {
    return [this](const StoreChange& change) {
      std::lock_guard lock(mutex_);
      entries_.push_back((change.event == StoreEvent::kSet ? "set " : "removed ") + change.key +
                         (change.value.empty() ? "" : "=" + change.value));
      written_.notify_all();
    };
  }
  std::vector<std::string> first(std::size_t count) {
    std::unique_lock lock(mutex_);
    written_.wait_until(lock, soon().when(), [&] { return entries_.size() >= count; });
    return entries_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable written_;
  std::vector<std::string> entries_;
  std::unique_ptr<StoreClient> client_;  // goes first, since it calls the writer
};

TEST(StoreWatchTest, SeesEveryChangeOfItsKeysInOrder) {
  auto server = server_without_listener();
  auto ben = client_of(*server);
  Diary diary(*server, "a/");
  ASSERT_TRUE(ben->set("a/1", "x", soon()).is_ok());
  ASSERT_TRUE(ben->set("b/1", "not this", soon()).is_ok());
  ASSERT_TRUE(ben->set("a/1", "xy", soon()).is_ok());
  ASSERT_TRUE(ben->compare_and_swap("a/2", "", "5", soon()).is_ok());
  ASSERT_TRUE(ben->remove("a/1", soon()).is_ok());
  EXPECT_EQ(diary.first(4),
            (std::vector<std::string>{"set a/1=x", "set a/1=xy", "set a/2=5", "removed a/1"}));
}

TEST(StoreWatchTest, AWatcherMayUseTheClient) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  std::promise<std::string> seen;
  ASSERT_TRUE(client
                  ->watch(
                      "question",
                      [&](const StoreChange&) { seen.set_value(*client->get("answer", soon())); },
                      soon())
                  .is_ok());
  ASSERT_TRUE(client->set("answer", "42", soon()).is_ok());
  ASSERT_TRUE(client->set("question", "?", soon()).is_ok());
  EXPECT_EQ(seen.get_future().get(), "42");
}

TEST(StoreWatchTest, SeesNothingAfterItsEnd) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  Diary ended;
  Diary lasting;
  auto watch = client->watch("", ended.writer(), soon());
  ASSERT_TRUE(watch.is_ok());
  ASSERT_TRUE(client->watch("", lasting.writer(), soon()).is_ok());
  ASSERT_TRUE(client->unwatch(*watch, soon()).is_ok());
  ASSERT_TRUE(client->set("k", "", soon()).is_ok());
  EXPECT_EQ(lasting.first(1), std::vector<std::string>{"set k"});
  EXPECT_TRUE(ended.first(0).empty());
  EXPECT_EQ(client->unwatch(*watch, soon()).code(), Code::kNotFound);
}

TEST(StoreWatchTest, ItsEndWaitsForACallThatRuns) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  std::promise<void> is_in;
  std::promise<void> may_go;
  std::atomic<bool> has_ended = false;
  auto watch = client->watch(
      "k",
      [&](const StoreChange&) {
        is_in.set_value();
        may_go.get_future().wait();
        has_ended = true;
      },
      soon());
  ASSERT_TRUE(watch.is_ok());
  ASSERT_TRUE(client->set("k", "", soon()).is_ok());
  is_in.get_future().wait();
  EXPECT_EQ(client->unwatch(*watch, Deadline::after(std::chrono::milliseconds(5))).code(),
            Code::kTimeout);
  auto ending = std::async(std::launch::async, [&] {
    const Status status = client->unwatch(*watch, soon());
    EXPECT_TRUE(has_ended);
    return status;
  });
  may_go.set_value();
  EXPECT_TRUE(ending.get().is_ok());
}

TEST(StoreWatchTest, SeesTheKeysOfAMemberGoWithIt) {
  auto server = server_without_listener();
  auto ben = client_of(*server);
  Diary diary(*server, "member/");
  ASSERT_TRUE(ben->set("member/ben", "here", soon(), KeyLife::kLease).is_ok());
  ben.reset();
  EXPECT_EQ(diary.first(2),
            (std::vector<std::string>{"set member/ben=here", "removed member/ben"}));
}

// A member by hand that stops speaking, as one does whose host has lost power.
TEST(StoreLivenessTest, AMemberThatIsSilentForTooLongIsGone) {
  auto server = server_without_listener();
  auto [ours, theirs] = socket_pair();
  ASSERT_TRUE(server->adopt(std::move(theirs)).is_ok());
  RawPeer silent(std::move(ours));
  silent.send(encode(StoreHello{.member = "PE 1", .silence_ms = 30}));
  ASSERT_TRUE(decode_welcome(silent.receive()).is_ok());
  Diary diary(*server, "mine");
  silent.send(encode(StoreRequest{
      .id = 1, .operation = StoreOperation::kSet, .key = "mine", .value = "1", .is_owned = true}));
  EXPECT_EQ(diary.first(2), (std::vector<std::string>{"set mine=1", "removed mine"}));
  EXPECT_TRUE(silent.sees_the_end());
}

TEST(StoreLivenessTest, AMemberThatOnlyPingsLives) {
  auto server = StoreServer::listen({"127.0.0.1", 0});
  ASSERT_TRUE(server.is_ok());
  auto idle = StoreClient::connect({.endpoint = (*server)->endpoint(),
                                    .member = "idle",
                                    .silence = std::chrono::milliseconds(200)},
                                   soon());
  ASSERT_TRUE(idle.is_ok()) << idle.status().to_string();
  ASSERT_TRUE((*idle)->set("mine", "", soon(), KeyLife::kLease).is_ok());
  auto other = StoreClient::connect({.endpoint = (*server)->endpoint(), .member = "other"}, soon());
  ASSERT_TRUE(other.is_ok());
  Diary diary;
  ASSERT_TRUE((*other)->watch("mine", diary.writer(), soon()).is_ok());
  // Twice as long as it may be silent, by the store's own clock.
  EXPECT_EQ((*other)->get("never", Deadline::after(std::chrono::milliseconds(400))).code(),
            Code::kTimeout);
  EXPECT_TRUE((*other)->get_now("mine", soon()).is_ok());
  EXPECT_TRUE(diary.first(0).empty());
}

// The other way round: a store by hand that is stopped, not dead.
TEST(StoreLivenessTest, AStoreThatIsSilentForTooLongIsLost) {
  auto listener = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener.is_ok());
  auto connecting = std::async(std::launch::async, [&] {
    return StoreClient::connect({.endpoint = listener->endpoint,
                                 .security = {.kind = StoreSecurity::Kind::kPlain},
                                 .member = "PE 0",
                                 .silence = std::chrono::milliseconds(100)},
                                soon());
  });
  pollfd ready{.fd = listener->socket.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, soon().remaining_poll_ms()), 1);
  RawPeer store(Fd(::accept(listener->socket.get(), nullptr, nullptr)));
  EXPECT_EQ(decode_hello(store.receive())->silence_ms, 100U);
  store.send(encode(StoreWelcome{.session = 1}));
  auto client = connecting.get();
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  const auto begin = Clock::now();
  const Status status = (*client)->get("k", Deadline::never()).status();
  EXPECT_EQ(status.code(), Code::kStoreLost);
  EXPECT_NE(status.message().find("nothing was heard of it"), std::string::npos)
      << status.message();
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(50));
}

TEST(StoreForkTest, AChildIsToldThatTheConnectionIsItsParents) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  ASSERT_TRUE(client->set("k", "parent", soon()).is_ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(client->set("k", "child", soon()).code() == Code::kForked ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(*client->get("k", soon()), "parent");
}

// Whatever the parent's other threads hold at that moment.
TEST(StoreForkTest, AChildNeverWaitsForAThreadOfItsParent) {
  constexpr int kChildren = 60;
  constexpr unsigned kLimitS = 20;
  auto server = server_without_listener();
  auto client = client_of(*server);
  const auto watch = client->watch(
      "k", [](const StoreChange&) {}, soon());
  ASSERT_TRUE(watch.is_ok());
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) static_cast<void>(client->set("k", "parent", soon()));
  });
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(kLimitS);
      const bool is_refused = client->unwatch(*watch, soon()).code() == Code::kForked &&
                              client->watch("k", {}, soon()).code() == Code::kForked;
      client->end();
      ::_exit(is_refused ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  is_over = true;
  other.join();
}

}  // namespace
}  // namespace memspan
