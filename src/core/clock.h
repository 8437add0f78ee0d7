// SPDX-License-Identifier: Apache-2.0
// Time that only goes forward, and the deadline that every blocking call carries.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

namespace memspan::inline core {

using Clock = std::chrono::steady_clock;
using Duration = Clock::duration;

// The kernel's last tick (1 to 10 ms ago at most), as Clock. Much cheaper to read.
inline Clock::time_point last_tick() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return Clock::time_point(std::chrono::seconds(time.tv_sec) +
                           std::chrono::nanoseconds(time.tv_nsec));
}

inline double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

inline Duration from_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// A value: a moment after which waiting is an error. `never()` is for waits that another rule
// bounds (OpenSHMEM waits end when a peer dies).
class Deadline {
 public:
  static Deadline after(Duration duration) { return Deadline(Clock::now() + duration); }
  static Deadline never() { return Deadline(Clock::time_point::max()); }

  bool is_never() const { return when_ == Clock::time_point::max(); }
  bool has_passed() const { return !is_never() && Clock::now() >= when_; }
  Clock::time_point when() const { return when_; }
  // This one, or `limit` from now when that is earlier.
  Deadline within(Duration limit) const { return until(Clock::now() + limit); }
  // This one, or `when` if that is earlier.
  Deadline until(Clock::time_point when) const { return Deadline(std::min(when, when_)); }
  Duration remaining() const {
    return is_never() ? Duration::max() : std::max(Duration::zero(), when_ - Clock::now());
  }
  // For poll(2): rounded up so that a wait never spins on 0; -1 when never.
  int remaining_poll_ms() const {
    if (is_never()) return -1;
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(remaining()).count();
    return static_cast<int>(std::min<decltype(ms)>(ms, 1 << 30));
  }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace memspan::inline core
