// SPDX-License-Identifier: Apache-2.0
// Decides whether a wait polls for a moment before it sleeps. To be woken costs tens of
// microseconds on an idle core, and a slice of time if another program takes the core. Polling pays
// off if the event comes soon. Each failed spin doubles the number of waits that skip the next try.
// So rare messages, and peers that share our core, cost next to nothing.
#pragma once

#include <atomic>
#include <concepts>

#include "core/clock.h"
#include "core/cpu.h"

namespace memspan::inline core {

// Decides which waits spin. Thread-safe; if threads race, one of their updates may be lost.
class SpinHabit {
 public:
  // After `patience` failed spins in a row the next wait does not spin. Each further failed spin
  // doubles the number of waits that do not, up to `most_skipped`.
  constexpr SpinHabit(int patience, int most_skipped)
      : patience_(patience), most_skipped_(most_skipped) {}

  // Each wait calls it once.
  bool spins_now() {
    const int skip = skip_.load(std::memory_order_relaxed);
    if (skip > 0) skip_.store(skip - 1, std::memory_order_relaxed);
    return skip == 0;
  }
  // True at first, and while one of the last `patience` spins ended its wait.
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
  std::atomic<int> in_vain_{0};  // failed spins in a row, up to patience_
  std::atomic<int> skip_{0};     // waits that still skip the spin
  std::atomic<int> skipped_{0};  // skip_ after the last failed spin
};

// One thread at a time.
class AdaptiveSpin {
 public:
  // About the cost of a wake-up.
  static constexpr Duration kLimit = std::chrono::microseconds(50);
  static constexpr int kMostSkipped = 512;

  // On one core, a polling thread takes the core from the other threads of its process. That pays
  // off only if they have nothing to do.
  explicit AdaptiveSpin(bool is_worth_it = usable_cores() > 1) : is_worth_it_(is_worth_it) {}

  // Polls; returns whether `is_there` became true. Returns false at once if it does not spin.
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

}  // namespace memspan::inline core
