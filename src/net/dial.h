// SPDX-License-Identifier: Apache-2.0
// Connecting by TCP, also where packets are lost.
//
// If a first packet is lost, the kernel sends it again after a second. It takes that second for the
// round trip, and so waits three seconds before it sends later packets again: longer than a peer
// that lives may be silent (transport/message/connection.h). Therefore a further attempt begins
// after a quarter of a second without an answer, four times at most. The first that succeeds
// counts; there is an error when none is left. A Unix socket whose queue is full is tried again.
#pragma once

#include <vector>

#include "core/clock.h"
#include "net/socket_address.h"

namespace memspan {

// A value: move-only. The socket is non-blocking and closes on exec; invalid if there is an error.
struct Dialled {
  Fd socket;
  int error = 0;  // an errno; ETIMEDOUT at the deadline, EINTR once interrupted (core/interrupt.h)
};

// Connects in steps that do not wait. One thread at a time.
class Dialer {
 public:
  explicit Dialer(const SocketAddress& to);

  // Call it at first, when the descriptor is readable, and at next(). EINPROGRESS: not connected
  // yet.
  Dialled step();
  int descriptor() const { return epoll_.get(); }
  // Clock::time_point::max(): only the descriptor matters.
  Clock::time_point next() const { return next_; }

 private:
  int begin(Fd& socket);

  const SocketAddress to_;
  Fd epoll_;  // of the attempts
  std::vector<Fd> attempts_;
  std::size_t begun_ = 0;
  int failure_ = 0;  // of the attempt that failed last
  Clock::time_point next_ = Clock::time_point::min();
};

Dialled dial(const SocketAddress& to, const Deadline& deadline);

}  // namespace memspan
