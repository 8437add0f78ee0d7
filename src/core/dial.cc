// SPDX-License-Identifier: Apache-2.0
#include "core/dial.h"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/poll.h"

namespace memspan {
namespace {

constexpr Duration kUntilNextAttempt = std::chrono::milliseconds(250);
constexpr std::size_t kMostAttempts = 5;

// A caller of a free ephemeral port may be given that port for its own end. TCP then connects it to
// itself.
bool is_connected_to_itself(int socket) {
  sockaddr_storage local{};
  sockaddr_storage remote{};
  socklen_t length = sizeof local;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&local), &length) != 0) return false;
  length = sizeof remote;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&remote), &length) == 0 &&
         std::memcmp(&local, &remote, length) == 0;
}

// The outcome of an attempt that has one. An errno.
int outcome_of(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error == 0 && is_connected_to_itself(socket) ? ECONNREFUSED : error;
}

}  // namespace

Dialled dial(const sockaddr* to, socklen_t length, const Deadline& deadline) {
  std::vector<Fd> sockets;
  std::vector<pollfd> attempts;
  while (true) {
    if (sockets.size() < kMostAttempts) {
      Fd socket(::socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      int error = socket.is_valid() && ::connect(socket.get(), to, length) == 0 ? 0 : errno;
      if (error == 0) error = outcome_of(socket.get());
      if (error == 0) return {std::move(socket), 0};
      // A further attempt that cannot begin is not the end of those before.
      const bool has_begun = error == EINPROGRESS || error == EINTR;
      if (!has_begun && sockets.empty()) return {Fd(), error};
      if (has_begun) {
        attempts.push_back({.fd = socket.get(), .events = POLLOUT, .revents = 0});
        sockets.push_back(std::move(socket));
      }
    }
    const bool is_last = sockets.size() == kMostAttempts;
    const Deadline next = is_last ? deadline : deadline.within(kUntilNextAttempt);
    const Status ready = poll_ready(attempts, next, "");
    for (std::size_t i = 0; ready.is_ok() && i < attempts.size(); ++i) {
      if (attempts[i].revents == 0) continue;
      const int error = outcome_of(sockets[i].get());
      return {error == 0 ? std::move(sockets[i]) : Fd(), error};
    }
    if (!ready.is_ok() && ready.code() != Code::kTimeout) return {Fd(), EINTR};
    if (deadline.has_passed()) return {Fd(), ETIMEDOUT};
  }
}

}  // namespace memspan
