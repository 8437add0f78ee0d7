// SPDX-License-Identifier: Apache-2.0
#include "core/poll.h"

#include <cerrno>

#include "core/interrupt.h"
#include "core/on_engine.h"

namespace memspan {

Status poll_ready(std::span<pollfd> polled, const Deadline& deadline, const char* on_timeout) {
  OnEngine::check_may_block();
  while (true) {
    const int ready =
        ::poll(polled.data(), polled.size(), until_next_look(deadline).remaining_poll_ms());
    if (ready > 0) return Status::ok();
    if (ready < 0 && errno != EINTR) return Status::from_errno("poll");
    if (is_interrupted() || deadline.has_passed()) return end_of_wait(on_timeout);
  }
}

}  // namespace memspan
