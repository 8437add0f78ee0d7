// SPDX-License-Identifier: Apache-2.0
// Connecting by TCP, also where packets are lost.
//
// If a first packet is lost, the kernel sends it again after a second. It takes that second for the
// round trip, and so waits three seconds before it sends later packets again: longer than a peer
// that lives may be silent (transport/message/heartbeat.h). Therefore a further attempt begins
// after a quarter of a second without an answer, four times at most. The first that succeeds
// counts; there is an error when none is left.
#pragma once

#include <sys/socket.h>

#include "core/clock.h"
#include "core/fd.h"

namespace memspan {

// A value: move-only. The socket is non-blocking and closes on exec; invalid if there is an error.
struct Dialled {
  Fd socket;
  int error = 0;  // an errno; ETIMEDOUT at the deadline, EINTR once interrupted (core/interrupt.h)
};
Dialled dial(const sockaddr* to, socklen_t length, const Deadline& deadline);

}  // namespace memspan
