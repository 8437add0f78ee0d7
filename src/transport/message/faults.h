// SPDX-License-Identifier: Apache-2.0
// Faults to order, for tests: a process handles what it receives late, in another order among
// different peers, or not at all; or a connection is cut. They act between protocol and carrier.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/clock.h"
#include "core/status.h"

namespace memspan {

// Thread-safe; the times and counts are set before it is used.
struct Faults {
  Duration delay{};                // each time bytes came, they are handled so much later
  Duration reorder{};              // and up to so much more, by chance: links overtake each other
  std::uint64_t cut_after = 0;     // frames received on one connection; 0: never
  std::uint64_t silent_after = 0;  // frames received from all peers, then none is handled any more
  std::atomic<bool> silent{false};
  std::atomic<std::uint64_t> received{0};

  bool is_any() const {
    return delay != Duration{} || reorder != Duration{} || cut_after != 0 || silent_after != 0 ||
           silent.load(std::memory_order_relaxed);
  }
  // How long to wait before the next bytes are handled.
  Duration hold() const;

  // "delay=2ms,reorder=5ms,cut-after=100,silent-after=50"; times in us, ms or s. kInvalidArgument
  // names what is wrong and what is allowed.
  static Result<std::shared_ptr<Faults>> parse(std::string_view text);
  // MEMSPAN_FAULTS; null when it is not set.
  static Result<std::shared_ptr<Faults>> from_environment();
};

}  // namespace memspan
