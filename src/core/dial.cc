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
  int failure = 0;  // of the attempt that failed last
  for (std::size_t begun = 0;;) {
    if (begun < kMostAttempts) {
      Fd socket(::socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      int error = socket.is_valid() && ::connect(socket.get(), to, length) == 0 ? 0 : errno;
      if (error == 0) error = outcome_of(socket.get());
      if (error == 0) return {std::move(socket), 0};
      ++begun;
      if (error == EINPROGRESS || error == EINTR) {
        attempts.push_back({.fd = socket.get(), .events = POLLOUT, .revents = 0});
        sockets.push_back(std::move(socket));
      } else {
        failure = error;
      }
    }
    // An attempt that fails is not the end of the others.
    if (sockets.empty()) return {Fd(), failure};
    const Deadline next = begun == kMostAttempts ? deadline : deadline.within(kUntilNextAttempt);
    const Status ready = poll_ready(attempts, next, "");
    for (std::size_t i = attempts.size(); ready.is_ok() && i-- > 0;) {
      if (attempts[i].revents == 0) continue;
      failure = outcome_of(sockets[i].get());
      if (failure == 0) return {std::move(sockets[i]), 0};
      sockets.erase(sockets.begin() + static_cast<std::ptrdiff_t>(i));
      attempts.erase(attempts.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (sockets.empty()) return {Fd(), failure};
    if (!ready.is_ok() && ready.code() != Code::kTimeout) return {Fd(), EINTR};
    if (deadline.has_passed()) return {Fd(), ETIMEDOUT};
  }
}

}  // namespace memspan
