// SPDX-License-Identifier: Apache-2.0
// The server and the client together, over socket pairs and over loopback TCP.
#include "store/server.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "net/tcp.h"
#include "support.h"
#include "support/must.h"

namespace memspan {
namespace {

std::unique_ptr<StoreServer> listening(const Endpoint& endpoint = {"127.0.0.1", 0}) {
  return must(StoreServer::listen(endpoint));
}

std::unique_ptr<StoreClient> connected(const Endpoint& endpoint) {
  return must(StoreClient::connect({.endpoint = endpoint, .member = "a test"}, soon()));
}

template <typename Work>
void in_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

void use_every_operation(StoreClient& client) {
  EXPECT_TRUE(client.set("k", "v", soon()).is_ok());
  EXPECT_EQ(*client.get("k", soon()), "v");
  EXPECT_EQ(*client.get_now("k", soon()), "v");
  EXPECT_EQ(client.get_now("none", soon()).code(), Code::kNotFound);
  EXPECT_EQ(*client.compare_and_swap("k", "v", "x", soon()), "x");
  EXPECT_EQ(*client.compare_and_swap("k", "v", "y", soon()), "x");
  EXPECT_TRUE(*client.remove("k", soon()));
  EXPECT_FALSE(*client.remove("k", soon()));
  EXPECT_TRUE(client.set("p/a", "1", soon()).is_ok());
  EXPECT_TRUE(client.set("p/b", "2", soon(), KeyLife::kLease).is_ok());
  EXPECT_EQ(*client.list("p/", soon()), (StoreListing{{"p/a", "1"}, {"p/b", "2"}}));
  EXPECT_EQ(*client.take_rank("ranks", -1, 0, soon()), 0);
  EXPECT_TRUE(client.give_rank("ranks", soon()).is_ok());
  EXPECT_EQ(client.give_rank("ranks", soon()).code(), Code::kNotFound);
}

TEST(StoreServerTest, ServesEveryOperationOverASocketPair) {
  auto server = server_without_listener();
  use_every_operation(*client_of(*server));
}

TEST(StoreServerTest, ServesEveryOperationOverTcp) {
  auto server = listening();
  EXPECT_NE(server->endpoint().port, 0);
  use_every_operation(*connected(server->endpoint()));
}

TEST(StoreServerTest, ListensOnAHostName) {
  auto server = listening({"localhost", 0});
  use_every_operation(*connected({"localhost", server->endpoint().port}));
}

// Who listens everywhere is found at any address of this host.
TEST(StoreServerTest, ListensEverywhereWhenAskedTo) {
  auto server = listening({"0.0.0.0", 0});
  use_every_operation(*connected({"127.0.0.1", server->endpoint().port}));
}

TEST(StoreServerTest, NamesAnEndpointThatIsTaken) {
  auto server = listening();
  auto second = StoreServer::listen(server->endpoint());
  EXPECT_EQ(second.code(), Code::kUnavailable);
  EXPECT_NE(second.status().message().find(server->endpoint().to_string()), std::string::npos);
}

TEST(StoreServerTest, ItsPortCanBeUsedAgainAtOnce) {
  auto server = listening();
  const Endpoint endpoint = server->endpoint();
  auto client = connected(endpoint);
  server.reset();
  client.reset();
  use_every_operation(*connected(listening(endpoint)->endpoint()));
}

// A child of fork() that holds every descriptor of this process until it is let go.
class Child {
 public:
  Child() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    process_ = ::fork();
    if (process_ != 0) return;
    ::close(ends_[1]);
    char byte = 0;
    ::_exit(::read(ends_[0], &byte, 1) == 0 ? 0 : 1);
  }
  ~Child() {
    ::close(ends_[1]);
    ::close(ends_[0]);
    ::waitpid(process_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  int ends_[2];
  pid_t process_;
};

TEST(StoreServerTest, ItsEndIsSeenThoughAChildHoldsItsSockets) {
  auto server = listening();
  const Endpoint endpoint = server->endpoint();
  auto client = connected(endpoint);
  const Child child;
  server.reset();
  EXPECT_EQ(client->get("never", soon()).code(), Code::kStoreLost);
  EXPECT_FALSE(connect_tcp(endpoint, soon()).is_ok());
}

TEST(StoreServerTest, AClientsEndIsSeenThoughAChildHoldsItsSocket) {
  auto server = listening();
  auto watcher = connected(server->endpoint());
  auto client = connected(server->endpoint());
  ASSERT_TRUE(client->set("mine", "v", soon(), KeyLife::kLease).is_ok());
  std::promise<void> gone;
  ASSERT_TRUE(watcher
                  ->watch(
                      "mine", [&](const auto&) { gone.set_value(); }, soon())
                  .is_ok());
  const Child child;
  client.reset();
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST(StoreServerTest, RefusesToAdoptWhatIsNotASocket) {
  EXPECT_EQ(server_without_listener()->adopt(Fd()).code(), Code::kInvalidArgument);
}

TEST(StoreServerTest, AGetIsAnsweredWhenAnotherClientSets) {
  auto server = server_without_listener();
  auto anna = client_of(*server);
  auto ben = client_of(*server);
  auto waiting = std::async(std::launch::async, [&] { return anna->get("k", soon()); });
  EXPECT_TRUE(ben->set("k", "v", soon()).is_ok());
  EXPECT_EQ(*waiting.get(), "v");
}

TEST(StoreServerTest, AGetThatTimesOutNamesWhatIsMissing) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  const Status status = client->get("b", Deadline::after(std::chrono::milliseconds(20))).status();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_NE(status.message().find("missing \"b\""), std::string::npos) << status.message();
  EXPECT_EQ(client->get("b", Deadline::after(std::chrono::milliseconds(1))).code(), Code::kTimeout);
  EXPECT_TRUE(client->set("b", "", soon()).is_ok());
}

TEST(StoreServerTest, AnswersWaitsInTheOrderOfTheirDeadlines) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  auto later = std::async(std::launch::async, [&] {
    return client->get("later", Deadline::after(std::chrono::milliseconds(200)));
  });
  EXPECT_EQ(client->get("sooner", Deadline::after(std::chrono::milliseconds(10))).code(),
            Code::kTimeout);
  EXPECT_EQ(later.get().code(), Code::kTimeout);
}

TEST(StoreServerTest, ThreadsShareOneClient) {
  auto server = listening();
  auto client = connected(server->endpoint());
  auto work = [&client](int thread) {
    const std::string mine = std::to_string(thread);
    const std::string next = std::to_string((thread + 1) % 8);
    for (int i = 0; i < 100; ++i) {
      const std::string suffix = "/" + std::to_string(i);
      EXPECT_TRUE(client->set(mine + suffix, mine, soon()).is_ok());
      EXPECT_EQ(*client->get(next + suffix, soon()), next);
    }
  };
  in_threads(8, work);
}

// Both directions are full at once; nobody may wait for the other for ever.
TEST(StoreServerTest, ThreadsSendAndReceiveLargeValuesTogether) {
  auto server = listening();
  auto client = connected(server->endpoint());
  auto work = [&client](int thread) {
    const std::string value(std::size_t{3} << 20, static_cast<char>('a' + thread));
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(client->set(std::to_string(thread), value, soon()).is_ok());
      EXPECT_TRUE(client->get(std::to_string(thread), soon()).value() == value);
    }
  };
  in_threads(4, work);
}

TEST(StoreServerTest, KeepsAValueOfTheLargestSizeAndRefusesALargerOne) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  std::string value(kMaxValueBytes, 'v');
  EXPECT_TRUE(client->set("k", value, soon()).is_ok());
  EXPECT_TRUE(client->get("k", soon()).value() == value);
  value += 'v';
  EXPECT_EQ(client->set("k", value, soon()).code(), Code::kInvalidArgument);
}

TEST(StoreServerTest, RefusesAKeyThatIsTooLong) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  EXPECT_TRUE(client->set(std::string(kMaxKeyBytes, 'k'), "v", soon()).is_ok());
  EXPECT_EQ(client->set(std::string(kMaxKeyBytes + 1, 'k'), "v", soon()).code(),
            Code::kInvalidArgument);
}

TEST(StoreServerTest, AClientMayComeBeforeTheServer) {
  const ReservedPort port = reserved_port();
  auto early = StoreClient::connect({.endpoint = port.endpoint, .member = "early"},
                                    Deadline::after(std::chrono::milliseconds(30)));
  EXPECT_EQ(early.code(), Code::kTimeout);
  EXPECT_NE(early.status().message().find(port.endpoint.to_string()), std::string::npos);
  EXPECT_NE(early.status().message().find("refused"), std::string::npos);

  auto patient = std::async(std::launch::async, [&] { return connected(port.endpoint); });
  auto server = listening(port.endpoint);
  use_every_operation(*patient.get());
}

TEST(StoreServerTest, ItsEndIsAnnouncedToAPendingGet) {
  auto server = listening();
  const std::string endpoint = server->endpoint().to_string();
  auto client = connected(server->endpoint());
  auto pending =
      std::async(std::launch::async, [&] { return client->get("never", Deadline::never()); });
  EXPECT_TRUE(client->set("k", "v", soon()).is_ok());
  server.reset();
  const Status status = pending.get().status();
  EXPECT_EQ(status.code(), Code::kStoreLost);
  EXPECT_NE(status.message().find(endpoint), std::string::npos);
  EXPECT_EQ(client->set("k", "v", soon()).code(), Code::kStoreLost);
}

TEST(StoreServerTest, DropsAPeerThatSendsGarbageAlone) {
  auto server = listening();
  auto client = connected(server->endpoint());
  auto waiting = std::async(std::launch::async, [&] { return client->get("k", soon()); });
  for (const std::string& garbage :
       {std::string(100, '\0'), std::string(100, '\xff'), std::string("GET / HTTP/1.1\r\n\r\n"),
        encode(StoreHello{.member = "bad"}) + std::string(64, '\x01')}) {
    RawPeer bad(std::move(connect_tcp(server->endpoint(), soon()).value().socket));
    bad.send(garbage);
    bad.shut_down_sending();
    EXPECT_TRUE(bad.sees_the_end());
  }
  EXPECT_TRUE(client->set("k", "v", soon()).is_ok());
  EXPECT_EQ(*waiting.get(), "v");
}

TEST(StoreServerTest, ASilentPeerKeepsNobodyWaiting) {
  auto server = listening();
  std::vector<Fd> silent;
  silent.reserve(50);
  for (int i = 0; i < 50; ++i)
    silent.push_back(std::move(connect_tcp(server->endpoint(), soon()).value().socket));
  use_every_operation(*connected(server->endpoint()));
}

TEST(StoreServerTest, AClientThatGoesWhileItWaitsDisturbsNobody) {
  auto server = server_without_listener();
  auto [ours, theirs] = socket_pair();
  ASSERT_TRUE(server->adopt(std::move(theirs)).is_ok());
  RawPeer peer(std::move(ours));
  peer.send(encode(StoreHello{.member = "short-lived"}));
  peer.send(encode(
      StoreRequest{.operation = StoreOperation::kGet, .key = "k", .timeout_ms = kNoTimeout}));
  EXPECT_TRUE(decode_welcome(peer.receive()).is_ok());
  peer.close();
  EXPECT_TRUE(client_of(*server)->set("k", "v", soon()).is_ok());
}

}  // namespace
}  // namespace memspan
