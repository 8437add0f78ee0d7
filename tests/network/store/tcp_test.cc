// SPDX-License-Identifier: Apache-2.0
#include "net/tcp.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <fstream>
#include <future>
#include <string>

#include "support.h"

namespace memspan {
namespace {

TEST(TcpTest, PicksAFreePortAndNamesIt) {
  auto listener = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener.is_ok()) << listener.status().to_string();
  EXPECT_EQ(listener->endpoint.host, "127.0.0.1");
  EXPECT_NE(listener->endpoint.port, 0);
  EXPECT_TRUE(connect_tcp(listener->endpoint, soon()).is_ok());
}

TEST(TcpTest, ResolvesAHostName) {
  auto listener = listen_tcp({"localhost", 0});
  ASSERT_TRUE(listener.is_ok()) << listener.status().to_string();
  EXPECT_TRUE(connect_tcp({"localhost", listener->endpoint.port}, soon()).is_ok());
}

TEST(TcpTest, ListensOnIpv6WhereThereIsIpv6) {
  auto listener = listen_tcp({"::1", 0});
  ASSERT_TRUE(listener.is_ok()) << listener.status().to_string();
  EXPECT_EQ(listener->endpoint.host, "::1");
  EXPECT_TRUE(connect_tcp(listener->endpoint, soon()).is_ok());
}

TEST(TcpTest, ClosesItsSocketsOnExec) {
  auto listener = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener.is_ok());
  auto socket = connect_tcp(listener->endpoint, soon());
  ASSERT_TRUE(socket.is_ok());
  EXPECT_NE(::fcntl(listener->socket.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(socket->socket.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(TcpTest, ListensOnlyWhereItWasTold) {
  auto named = listen_tcp({"lo", 0});
  ASSERT_TRUE(named.is_ok()) << named.status().to_string();
  EXPECT_EQ(named->endpoint.host, "127.0.0.1");
  auto all = listen_tcp({"0.0.0.0", 0});
  ASSERT_TRUE(all.is_ok()) << all.status().to_string();
  EXPECT_EQ(all->endpoint.host, "0.0.0.0");
  // An address for documents, which no host has.
  EXPECT_EQ(listen_tcp({"192.0.2.1", 0}).code(), Code::kUnreachable);
}

TEST(TcpTest, KnowsThatAnAddressOfThisHostIsLocal) {
  auto listener = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener.is_ok());
  auto connection = connect_tcp(listener->endpoint, soon());
  ASSERT_TRUE(connection.is_ok());
  EXPECT_TRUE(connection->is_local);
  EXPECT_TRUE(connection->is_loopback);
  EXPECT_EQ(connection->peer, listener->endpoint);
  EXPECT_EQ(peer_address(connection->socket.get()), "127.0.0.1");
}

TEST(TcpTest, NamesAnEndpointThatIsTaken) {
  auto first = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(first.is_ok());
  auto second = listen_tcp(first->endpoint);
  EXPECT_EQ(second.code(), Code::kUnavailable);
  EXPECT_NE(second.status().message().find(first->endpoint.to_string()), std::string::npos);
}

TEST(TcpTest, NamesAnEndpointWhereNobodyListens) {
  auto port = reserved_port();
  auto socket = connect_tcp(port.endpoint, soon());
  EXPECT_EQ(socket.code(), Code::kUnavailable);
  EXPECT_NE(socket.status().message().find(port.endpoint.to_string()), std::string::npos);
}

// Sockets in TIME_WAIT hold the port unless both the old and the new one may share it.
TEST(TcpTest, TheSamePortCanBeUsedAgainAtOnce) {
  auto first = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(first.is_ok());
  auto client = connect_tcp(first->endpoint, soon());
  ASSERT_TRUE(client.is_ok());
  Fd accepted(::accept(first->socket.get(), nullptr, nullptr));
  ASSERT_TRUE(accepted.is_valid());
  accepted.reset();  // closes first, so that this side is the one in TIME_WAIT
  client->socket.reset();
  first->socket.reset();
  auto second = listen_tcp(first->endpoint);
  EXPECT_TRUE(second.is_ok()) << second.status().to_string();
}

// The sockets of this host that have asked for a connection to this port of 127.0.0.1 and have no
// answer.
int unanswered(std::uint16_t port) {
  const std::string asks = fmt::format(" 0100007F:{:04X} 02 ", port);
  std::ifstream sockets("/proc/net/tcp");
  int count = 0;
  for (std::string line; std::getline(sockets, line);)
    count += line.find(asks) != std::string::npos;
  return count;
}

// While a listener's queue is full, the kernel drops what asks for a connection. The first attempt
// would be repeated after a second only.
TEST(TcpTest, AttemptsAgainWhereAFirstPacketIsLost) {
  auto listener = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener.is_ok());
  ASSERT_EQ(::listen(listener->socket.get(), 0), 0);  // one may wait
  auto waits = connect_tcp(listener->endpoint, soon());
  ASSERT_TRUE(waits.is_ok());
  auto connecting =
      std::async(std::launch::async, [&] { return connect_tcp(listener->endpoint, soon()); });
  for (const Deadline deadline = soon();
       unanswered(listener->endpoint.port) < 2 && !deadline.has_passed();)
    ::poll(nullptr, 0, 5);
  EXPECT_GE(unanswered(listener->endpoint.port), 2);
  pollfd next{.fd = listener->socket.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&next, 1, soon().remaining_poll_ms()), 1);
  EXPECT_TRUE(Fd(::accept(listener->socket.get(), nullptr, nullptr)).is_valid());
  auto connection = connecting.get();
  EXPECT_TRUE(connection.is_ok()) << connection.status().to_string();
}

bool is_connected_to_itself(const Fd& socket) {
  sockaddr_in local = {};
  sockaddr_in remote = {};
  socklen_t length = sizeof local;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &length);
  ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&remote), &length);
  return local.sin_port == remote.sin_port;
}

// The port lies where the kernel takes the callers' own ports from (it prefers those of the other
// parity than a listener's), so that one of these calls is offered a connection to itself.
TEST(TcpTest, NeverConnectsToItself) {
  auto listener = listen_tcp({"127.0.0.1", 0});
  ASSERT_TRUE(listener.is_ok());
  listener->socket.reset();
  const Endpoint endpoint{"127.0.0.1", static_cast<std::uint16_t>(listener->endpoint.port ^ 1)};
  for (int attempt = 0; attempt < 40000; ++attempt) {
    auto socket = connect_tcp(endpoint, soon());
    ASSERT_FALSE(socket.is_ok() && is_connected_to_itself(socket->socket));
  }
}

}  // namespace
}  // namespace memspan
