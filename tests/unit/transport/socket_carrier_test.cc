// SPDX-License-Identifier: Apache-2.0
#include "transport/message/socket/socket_carrier.h"
#include "support/connected.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace memspan {
namespace {

int send_buffer_of(int socket) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  EXPECT_EQ(::getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, &length), 0);
  return bytes;
}

// What the kernel makes of a wish.
int granted(std::size_t bytes) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto wish = static_cast<int>(bytes);
  EXPECT_EQ(::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &wish, sizeof wish), 0);
  const int got = send_buffer_of(socket);
  ::close(socket);
  return got;
}

struct Ends {
  std::unique_ptr<Carrier> carrier;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<ByteStream> connected;
  std::unique_ptr<ByteStream> accepted;
};

Ends connect(const SocketOptions& options) {
  Ends ends;
  ends.carrier = make_socket_carrier(options);
  ends.listener = ends.carrier->listen().value();
  ends.connected = connected(*ends.carrier, ends.listener->address()).value();
  ends.accepted = ends.listener->accept();
  return ends;
}

// What the first packets took is still what the kernel says: nothing was sent since.
TEST(SocketCarrierTest, ANearPeerGetsNoMoreThanTheCachesHold) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Ends ends = connect({.family = SocketOptions::Family::kTcp});
    for (const ByteStream* end : {ends.connected.get(), ends.accepted.get()}) {
      tcp_info info{};
      socklen_t length = sizeof info;
      ASSERT_EQ(::getsockopt(end->descriptor(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
      const bool near = info.tcpi_rtt != 0 && info.tcpi_rtt <= kNearUs;
      EXPECT_EQ(send_buffer_of(end->descriptor()) == granted(kNearSendBuffer), near)
          << info.tcpi_rtt << " us";
      EXPECT_EQ(end->window() == kNearSendBuffer, near) << info.tcpi_rtt << " us";
    }
  }
}

}  // namespace
}  // namespace memspan
