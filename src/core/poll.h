// SPDX-License-Identifier: Apache-2.0
// poll(2) for a thread that has nothing else to do: with a deadline, and until it is interrupted.
#pragma once

#include <poll.h>

#include <span>

#include "core/clock.h"
#include "core/status.h"

namespace memspan {

// Returns once a descriptor is ready; `revents` say which. kTimeout with the text `on_timeout`, the
// interruption (core/interrupt.h), or kSystem.
Status poll_ready(std::span<pollfd> polled, const Deadline& deadline, const char* on_timeout);

}  // namespace memspan
