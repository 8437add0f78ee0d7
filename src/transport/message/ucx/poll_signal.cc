// SPDX-License-Identifier: Apache-2.0
#include "transport/message/ucx/poll_signal.h"

#include <sys/socket.h>

#include <array>
#include <cstddef>

namespace memspan::ucx {
namespace {

void drain(int socket) {
  std::array<std::byte, 4096> bytes;
  while (::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
}

}  // namespace

Result<PollSignal> PollSignal::create() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return Status::from_errno("making a pair of sockets");
  PollSignal made;
  made.watched_.reset(ends[0]);
  made.own_.reset(ends[1]);
  // The kernel makes it the smallest that it allows.
  const int least = 1;
  ::setsockopt(made.watched_.get(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  return made;
}

void PollSignal::set_readable(bool is_readable) {
  if (is_readable == is_readable_) return;
  is_readable_ = is_readable;
  const std::byte one{1};
  if (is_readable)
    ::send(own_.get(), &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  else
    drain(watched_.get());
}

void PollSignal::set_writable(bool is_writable) {
  if (is_writable == is_writable_) return;
  is_writable_ = is_writable;
  if (is_writable) return drain(own_.get());
  const std::array<std::byte, 256> bytes{};
  while (::send(watched_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
    continue;
}

void PollSignal::hang_up() {
  ::shutdown(own_.get(), SHUT_RDWR);
}

}  // namespace memspan::ucx
