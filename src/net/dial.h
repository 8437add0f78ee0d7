// SPDX-License-Identifier: Apache-2.0
// Connecting by TCP, also where packets are lost.
//
// If a first packet is lost, the kernel sends it again after a second. It takes that second for the
// round trip, and so waits three seconds before it sends later packets again: longer than a peer
// that lives may be silent (transport/message/connection.h). Therefore a further attempt begins
// after a quarter of a second without an answer, four times at most. The first that succeeds
// counts; there is an error when none is left. A Unix socket whose queue is full is tried again.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <vector>

#include "core/interrupt.h"
#include "net/socket_address.h"

namespace memspan::inline net {

// A value: move-only. The socket is non-blocking and closes on exec; invalid if there is an error.
struct Dialled {
  Fd socket;
  int error = 0;  // an errno; ETIMEDOUT at the deadline, EINTR once interrupted (core/interrupt.h)
};

// A caller of a free ephemeral port may be given that port for its own end. TCP then connects it to
// itself.
inline bool is_connected_to_itself(int socket) {
  const auto local = SocketAddress::of_socket(socket);
  const auto remote = SocketAddress::of_peer(socket);
  return local.is_ok() && remote.is_ok() && *local == *remote;
}

// The outcome of an attempt that has one. An errno.
inline int outcome_of(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error == 0 && is_connected_to_itself(socket) ? ECONNREFUSED : error;
}

// Connects in steps that do not wait. One thread at a time.
class Dialer {
 public:
  explicit Dialer(const SocketAddress& to) : to_(to), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

  // Call it at first, when the descriptor is readable, and at next(). EINPROGRESS: not connected
  // yet.
  Dialled step() {
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
  int descriptor() const { return epoll_.get(); }
  // Clock::time_point::max(): only the descriptor matters.
  Clock::time_point next() const { return next_; }

 private:
  static constexpr Duration kUntilNextAttempt = std::chrono::milliseconds(250);
  static constexpr std::size_t kMostAttempts = 5;
  // Until a Unix socket whose queue was full is tried again.
  static constexpr Duration kUntilRoom = std::chrono::milliseconds(1);

  // An errno, EINPROGRESS or EAGAIN: the attempt has no outcome yet, or is to be begun again.
  int begin(Fd& socket) {
    socket = open_socket(to_);
    if (!socket.is_valid()) return errno;
    if (::connect(socket.get(), to_.get(), to_.length) == 0) return outcome_of(socket.get());
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    epoll_event event{.events = EPOLLOUT, .data = {.fd = socket.get()}};
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0 ? EINPROGRESS
                                                                               : errno;
  }

  const SocketAddress to_;
  Fd epoll_;  // of the attempts
  std::vector<Fd> attempts_;
  std::size_t begun_ = 0;
  int failure_ = 0;  // of the attempt that failed last
  Clock::time_point next_ = Clock::time_point::min();
};

inline Dialled dial(const SocketAddress& to, const Deadline& deadline) {
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

}  // namespace memspan::inline net
