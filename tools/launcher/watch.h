// SPDX-License-Identifier: Apache-2.0
// A descriptor that an event loop watches, at some times only.
#pragma once

#include <cerrno>
#include <utility>

#include "core/log.h"
#include "net/event_loop.h"

namespace memspan::launcher {

// Stop it before you close the descriptor. The loop outlives it. One thread.
class Watch {
 public:
  Watch() = default;
  Watch(Watch&& other) noexcept
      : loop_(other.loop_), token_(std::exchange(other.token_, EventLoop::Token{})) {}
  Watch& operator=(Watch&& other) noexcept {
    std::swap(loop_, other.loop_);
    std::swap(token_, other.token_);
    return *this;
  }
  ~Watch() { stop(); }

  bool is_on() const { return token_ != 0; }
  // Does nothing while it is on. Without `ready`, events only end the loop's wait. Fails for a
  // descriptor that cannot be watched, as a file's, which is always ready.
  Status start(
      EventLoop& loop, int descriptor, std::uint32_t events,
      EventLoop::Ready ready = [](std::uint32_t) {}) {
    if (is_on()) return Status::ok();
    loop_ = &loop;
    MEMSPAN_TRY_ASSIGN(token_, loop.watch(descriptor, events, std::move(ready)), "waiting");
    return Status::ok();
  }
  void stop() {
    if (is_on()) loop_->cancel(std::exchange(token_, EventLoop::Token{}));
  }
  void set(bool is_wanted, EventLoop& loop, int descriptor, std::uint32_t events) {
    if (!is_wanted) return stop();
    const Status status = start(loop, descriptor, events);
    // A file cannot be watched, and needs no wait.
    if (!status.is_ok() && errno != EPERM) log_line(LogLevel::kWarn, status.to_string());
  }

 private:
  EventLoop* loop_ = nullptr;
  EventLoop::Token token_{};
};

}  // namespace memspan::launcher
