// SPDX-License-Identifier: Apache-2.0
// Whether looking again and again for a moment is worth more than going to sleep at once: to be
// woken costs tens of microseconds where a core is idle. It is while what one looks for comes
// soon. Each look in vain doubles how many times one sleeps at once before the next try, so that
// seldom messages, and peers that share our core, cost next to nothing.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>

#include "core/clock.h"
#include "core/cpu.h"

namespace memspan {

// One thread at a time.
class AdaptiveSpin {
 public:
  // About what it costs to be woken.
  static constexpr Duration kLimit = std::chrono::microseconds(50);
  static constexpr int kMostSkipped = 512;

  // With one core, a thread that looks takes it from the others of its process: worth it only where
  // those have nothing to do.
  explicit AdaptiveSpin(bool is_worth_it = usable_cores() > 1) : is_worth_it_(is_worth_it) {}

  // Whether `is_there` became true; false at once when it is not worth a try.
  bool wait(std::predicate auto is_there) {
    if (!is_worth_it_) return false;
    if (skip_ > 0) {
      --skip_;
      return false;
    }
    const auto end = Clock::now() + kLimit;
    do {
      if (is_there()) {
        skipped_ = 0;
        return true;
      }
      cpu_pause();
    } while (Clock::now() < end);
    skipped_ = std::clamp(2 * skipped_, 1, kMostSkipped);
    skip_ = skipped_;
    return false;
  }

 private:
  const bool is_worth_it_;
  int skip_ = 0;     // calls that do not look
  int skipped_ = 0;  // after the last try in vain
};

}  // namespace memspan
