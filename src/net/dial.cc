// SPDX-License-Identifier: Apache-2.0
#include "net/dial.h"

#include <sys/epoll.h>

#include "core/interrupt.h"

namespace memspan {
namespace {

constexpr Duration kUntilNextAttempt = std::chrono::milliseconds(250);
constexpr std::size_t kMostAttempts = 5;
// Until a Unix socket whose queue was full is tried again.
constexpr Duration kUntilRoom = std::chrono::milliseconds(1);

// A caller of a free ephemeral port may be given that port for its own end. TCP then connects it to
// itself.
bool is_connected_to_itself(int socket) {
  const auto local = SocketAddress::of_socket(socket);
  const auto remote = SocketAddress::of_peer(socket);
  return local.is_ok() && remote.is_ok() && *local == *remote;
}

// The outcome of an attempt that has one. An errno.
int outcome_of(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error == 0 && is_connected_to_itself(socket) ? ECONNREFUSED : error;
}

}  // namespace

Dialer::Dialer(const SocketAddress& to) : to_(to), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

// An errno, EINPROGRESS or EAGAIN: the attempt has no outcome yet, or is to be begun again.
int Dialer::begin(Fd& socket) {
  socket = open_socket(to_);
  if (!socket.is_valid()) return errno;
  if (::connect(socket.get(), to_.get(), to_.length) == 0) return outcome_of(socket.get());
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  epoll_event event{.events = EPOLLOUT, .data = {.fd = socket.get()}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0 ? EINPROGRESS : errno;
}

Dialled Dialer::step() {
  epoll_event event{};
  while (::epoll_wait(epoll_.get(), &event, 1, 0) == 1) {
    const auto has_it = [&](const Fd& socket) { return socket.get() == event.data.fd; };
    const auto attempt = std::find_if(attempts_.begin(), attempts_.end(), has_it);
    Fd socket = std::move(*attempt);
    attempts_.erase(attempt);
    // Closing is not enough: a child of fork() may have the socket, and its events would still
    // come.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
    failure_ = outcome_of(socket.get());
    if (failure_ == 0) return {std::move(socket), 0};
  }
  // An attempt that fails is not the end of the others.
  if (Clock::now() >= next_ && begun_ < kMostAttempts && (begun_ == 0 || !attempts_.empty())) {
    Fd socket;
    const int error = begin(socket);
    if (error == 0) return {std::move(socket), 0};
    const bool is_full = error == EAGAIN && to_.family() == AF_UNIX;
    if (!is_full) ++begun_;
    next_ = begun_ == kMostAttempts ? Clock::time_point::max()
                                    : Clock::now() + (is_full ? kUntilRoom : kUntilNextAttempt);
    if (error == EINPROGRESS)
      attempts_.push_back(std::move(socket));
    else if (!is_full)
      failure_ = error;
  }
  return {Fd(), attempts_.empty() && begun_ != 0 ? failure_ : EINPROGRESS};
}

Dialled dial(const SocketAddress& to, const Deadline& deadline) {
  Dialer dialer(to);
  while (true) {
    Dialled dialled = dialer.step();
    if (dialled.error != EINPROGRESS) return dialled;
    pollfd polled{.fd = dialer.descriptor(), .events = POLLIN, .revents = 0};
    const Status ready = poll_ready({&polled, 1}, deadline.until(dialer.next()), "");
    if (!ready.is_ok() && ready.code() != Code::kTimeout) return {Fd(), EINTR};
    if (!ready.is_ok() && deadline.has_passed()) return {Fd(), ETIMEDOUT};
  }
}

}  // namespace memspan
