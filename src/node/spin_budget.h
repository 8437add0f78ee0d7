// SPDX-License-Identifier: Apache-2.0
// How long waits spin before they give their core away. Spinning is right where the peer runs on
// another core, above all when some other program would take this one for a slice of time; it is
// wrong where the peer needs this very core. No count of processes tells the two apart, so waits
// find out: they spin as long as that ends some of them, and else one in a while tries it for a
// short time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace memspan {

// Of one process. Thread-safe; of threads that meet, what one of them learned may be lost.
class SpinBudget {
 public:
  static constexpr Duration kSpin = std::chrono::milliseconds(1);
  // After so many waits in a row that spun in vain the next ones do not spin.
  static constexpr int kVainSpins = 4;
  // Every so many of those one tries it for this time; twice as many after each that did it in
  // vain.
  static constexpr Duration kTry = std::chrono::microseconds(100);
  static constexpr std::uint32_t kOftenest = 16;
  static constexpr std::uint32_t kRarest = 4096;

  // How long a wait that begins now may spin.
  Duration next() {
    if (in_vain_.load(std::memory_order_relaxed) < kVainSpins) return kSpin;
    const std::uint32_t waits = waits_.load(std::memory_order_relaxed) + 1;
    const bool tries = waits >= between_tries_.load(std::memory_order_relaxed);
    waits_.store(tries ? 0 : waits, std::memory_order_relaxed);
    return tries ? kTry : Duration::zero();
  }

  // A wait ended while it spun.
  void spun_well() {
    in_vain_.store(0, std::memory_order_relaxed);
    between_tries_.store(kOftenest, std::memory_order_relaxed);
  }

  // A wait spun for its time, and goes on.
  void spun_in_vain() {
    const int in_vain = in_vain_.load(std::memory_order_relaxed);
    if (in_vain < kVainSpins) return in_vain_.store(in_vain + 1, std::memory_order_relaxed);
    const std::uint32_t between = between_tries_.load(std::memory_order_relaxed);
    between_tries_.store(std::min(2 * between, kRarest), std::memory_order_relaxed);
  }

 private:
  std::atomic<int> in_vain_{kVainSpins};
  std::atomic<std::uint32_t> waits_{0};
  std::atomic<std::uint32_t> between_tries_{kOftenest};
};

}  // namespace memspan
