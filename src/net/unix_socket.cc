// SPDX-License-Identifier: Apache-2.0
#include "net/unix_socket.h"

#include "core/interrupt.h"
#include "net/socket_address.h"

namespace memspan::inline net {
namespace {

constexpr int kBacklog = 128;

Result<Fd> make_socket(int how) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | how, 0));
  if (!socket.is_valid()) return Status::from_errno("making a Unix socket");
  return socket;
}

Status wait_readable(const Fd& socket, Deadline deadline) {
  pollfd polled{socket.get(), POLLIN, 0};
  return poll_ready({&polled, 1}, deadline, "nothing arrived on the Unix socket in time");
}

void collect_descriptors(msghdr& header, std::vector<Fd>& into) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      into.emplace_back(descriptor);
    }
  }
}

// One message with space for descriptors, as sendmsg(2) and recvmsg(2) take it.
struct DescriptorMessage {
  DescriptorMessage(char* bytes, std::size_t size) : piece{bytes, size} {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
  }
  iovec piece;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostUnixDescriptors * sizeof(int))] = {};
  msghdr header{};
};

}  // namespace

Result<Fd> unix_listen(std::string_view name) {
  MEMSPAN_TRY_ASSIGN(const SocketAddress address, SocketAddress::of_name(name), "listening");
  MEMSPAN_TRY_ASSIGN(Fd socket, make_socket(0), "listening");
  if (int error = bind_and_listen(socket.get(), address, kBacklog); error != 0)
    return Status::from_errno("listening on a Unix socket", error);
  return socket;
}

Result<Fd> unix_connect_now(std::string_view name) {
  MEMSPAN_TRY_ASSIGN(const SocketAddress address, SocketAddress::of_name(name), "connecting");
  MEMSPAN_TRY_ASSIGN(Fd socket, make_socket(SOCK_NONBLOCK), "connecting");
  while (connect(socket.get(), address.get(), address.length) != 0) {
    if (errno == EAGAIN) return Status(Code::kTimeout, "too many wait at the Unix socket");
    if (errno != EINTR) return Status::from_errno("connecting to a Unix socket");
  }
  return socket;
}

Result<Fd> unix_accept(const Fd& listener, Deadline deadline) {
  while (true) {
    MEMSPAN_TRY(wait_readable(listener, deadline), "accepting");
    Fd socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.is_valid()) return socket;
    if (errno != EINTR && errno != ECONNABORTED)
      return Status::from_errno("accepting on a Unix socket");
  }
}

Result<ucred> unix_peer(const Fd& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return Status::from_errno("asking for the process at the other end of a Unix socket");
  if (peer.pid <= 0) peer.pid = -1;
  return peer;
}

Status unix_send(const Fd& socket, std::string_view bytes, const std::vector<int>& descriptors) {
  if (bytes.size() > kMostUnixBytes || descriptors.size() > kMostUnixDescriptors)
    return {Code::kInvalidArgument, "a message over a Unix socket is too long"};
  DescriptorMessage parts(const_cast<char*>(bytes.data()), bytes.size());
  msghdr& header = parts.header;
  if (!descriptors.empty()) {
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (sendmsg(socket.get(), &header, MSG_NOSIGNAL) < 0)
    if (errno != EINTR) return Status::from_errno("sending over a Unix socket");
  return Status::ok();
}

Result<UnixMessage> unix_receive(const Fd& socket, Deadline deadline) {
  MEMSPAN_TRY(wait_readable(socket, deadline), "receiving");
  UnixMessage message;
  message.bytes.resize(kMostUnixBytes);
  DescriptorMessage parts(message.bytes.data(), message.bytes.size());
  parts.header.msg_controllen = sizeof parts.control;
  ssize_t got = 0;
  do got = recvmsg(socket.get(), &parts.header, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return Status::from_errno("receiving from a Unix socket");
  collect_descriptors(parts.header, message.descriptors);
  if (got == 0) return Status(Code::kUnavailable, "the other end of the Unix socket was closed");
  message.bytes.resize(static_cast<std::size_t>(got));
  return message;
}

}  // namespace memspan::inline net
