// SPDX-License-Identifier: Apache-2.0
// Detects whether the other end of a connection lives. Each side sends a beat in each interval,
// which the other answers, and checks whether bytes arrived, besides the other's beats. So a host
// without power, a network that is broken in one direction or both, and a stopped process are found
// at the limit.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "core/status.h"

namespace memspan {

// One thread at a time.
class Heartbeat {
 public:
  // A peer that is silent for `limit` is lost.
  explicit Heartbeat(Duration limit) : limit_(limit), interval_(limit / kLooksInLimit) {}

  bool has_begun() const { return has_begun_; }
  void begin(Clock::time_point now) {
    has_begun_ = true;
    heard_ = looked_ = now;
  }
  // When to look next, once it has begun.
  Clock::time_point next() const { return looked_ + interval_; }
  bool is_due(Clock::time_point now) const { return has_begun_ && now >= next(); }
  // `received`: all bytes so far. kPeerLost at the limit. A process that was itself stopped for
  // some intervals could not receive, so it starts over.
  Status look(Clock::time_point now, std::uint64_t received);

 private:
  static constexpr int kLooksInLimit = 5;

  const Duration limit_;
  const Duration interval_;
  bool has_begun_ = false;
  std::uint64_t received_ = 0;
  Clock::time_point heard_{};
  Clock::time_point looked_{};
};

}  // namespace memspan
