// SPDX-License-Identifier: Apache-2.0
// Whether looking again and again for a moment is worth more than giving the core away at once: to
// be woken costs tens of microseconds where a core is idle, and where some other program takes the
// core a slice of time. It is worth it while what one looks for comes soon. Each spin in vain
// doubles how many waits do not spin before the next try, so that seldom messages, and peers that
// share our core, cost next to nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>

#include "core/clock.h"
#include "core/cpu.h"

namespace memspan {

// Which waits spin. Thread-safe; of threads that meet, what one of them learned may be lost.
class SpinHabit {
 public:
  // After `patience` spins in a row in vain the next wait does not spin; after each further one
  // twice as many do not, up to `most_skipped`.
  constexpr SpinHabit(int patience, int most_skipped)
      : patience_(patience), most_skipped_(most_skipped) {}

  // Asked once by each wait.
  bool spins_now() {
    const int skip = skip_.load(std::memory_order_relaxed);
    if (skip > 0) skip_.store(skip - 1, std::memory_order_relaxed);
    return skip == 0;
  }
  // Whether one of the last `patience` spins ended its wait; at the begin, too.
  bool goes_well() const { return in_vain_.load(std::memory_order_relaxed) < patience_; }

  void spun_well() {
    in_vain_.store(0, std::memory_order_relaxed);
    skipped_.store(0, std::memory_order_relaxed);
  }
  void spun_in_vain() {
    const int in_vain = std::min(in_vain_.load(std::memory_order_relaxed) + 1, patience_);
    in_vain_.store(in_vain, std::memory_order_relaxed);
    if (in_vain < patience_) return;
    const int skipped = std::clamp(2 * skipped_.load(std::memory_order_relaxed), 1, most_skipped_);
    skipped_.store(skipped, std::memory_order_relaxed);
    skip_.store(skipped, std::memory_order_relaxed);
  }

 private:
  const int patience_;
  const int most_skipped_;
  std::atomic<int> in_vain_{0};  // spins in a row, up to patience_
  std::atomic<int> skip_{0};     // waits that do not spin
  std::atomic<int> skipped_{0};  // after the last spin in vain
};

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
    if (!is_worth_it_ || !habit_.spins_now()) return false;
    const auto end = Clock::now() + kLimit;
    do {
      if (is_there()) {
        habit_.spun_well();
        return true;
      }
      cpu_pause();
    } while (Clock::now() < end);
    habit_.spun_in_vain();
    return false;
  }

 private:
  const bool is_worth_it_;
  SpinHabit habit_{1, kMostSkipped};
};

}  // namespace memspan
