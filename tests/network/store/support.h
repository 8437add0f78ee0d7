// SPDX-License-Identifier: Apache-2.0
// What the store's tests share: socket pairs, raw frames and a deadline that only a bug reaches.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/fd.h"
#include "store/client.h"
#include "store/server.h"
#include "store/wire.h"
#include "support/must.h"

namespace memspan {

// Far longer than anything here takes, also under a sanitizer on a busy machine.
inline Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

inline std::pair<Fd, Fd> socket_pair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

// A port that is ours, so that nobody else takes it, and where nobody listens yet.
struct ReservedPort {
  Fd socket;
  Endpoint endpoint;
};

inline ReservedPort reserved_port() {
  ReservedPort port{Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {"127.0.0.1", 0}};
  const int on = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::setsockopt(port.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  EXPECT_EQ(::bind(port.socket.get(), generic, length), 0);
  EXPECT_EQ(::getsockname(port.socket.get(), generic, &length), 0);
  port.endpoint.port = ntohs(address.sin_port);
  return port;
}

// One end of a connection, spoken by hand.
class RawPeer {
 public:
  explicit RawPeer(Fd socket) : socket_(std::move(socket)) {}

  void send(std::string_view bytes) {
    ASSERT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // The next frame's body; empty at the connection's end.
  std::string receive() {
    for (;;) {
      if (auto body = reader_.next()) return std::string(*body);
      char chunk[4096];
      const ssize_t bytes = wait_readable() ? ::recv(socket_.get(), chunk, sizeof chunk, 0) : -1;
      if (bytes <= 0) return {};
      reader_.feed({chunk, static_cast<std::size_t>(bytes)});
    }
  }
  StoreRequest receive_request() {
    auto request = decode_request(receive());
    EXPECT_TRUE(request.is_ok()) << request.status().to_string();
    return request.is_ok() ? *request : StoreRequest{};
  }
  // True when the other side closes, whatever it says before.
  bool sees_the_end() {
    while (!receive().empty()) continue;
    return wait_readable();
  }
  int descriptor() const { return socket_.get(); }
  void shut_down_sending() { ::shutdown(socket_.get(), SHUT_WR); }
  void close() { socket_.reset(); }

 private:
  bool wait_readable() {
    pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, soon().remaining_poll_ms()) == 1;
  }
  Fd socket_;
  StoreFrameReader reader_{kMaxFrameBytes};
};

inline std::unique_ptr<StoreServer> server_without_listener() {
  return must(StoreServer::without_listener());
}

// A client of the server over a socket pair.
inline std::unique_ptr<StoreClient> client_of(StoreServer& server) {
  auto [ours, theirs] = socket_pair();
  EXPECT_TRUE(server.adopt(std::move(theirs)).is_ok());
  return must(StoreClient::adopt(std::move(ours), "a test", soon()));
}

}  // namespace memspan
