// SPDX-License-Identifier: Apache-2.0
// Injected faults for tests: a process handles received bytes late, in another order among peers,
// or not at all, or it cuts a connection. They act between protocol and carrier.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"
#include "core/status.h"

namespace memspan::inline transport {

// Thread-safe; set the times and counts first.
struct Faults {
  Duration delay{};                // received bytes are handled so much later
  Duration reorder{};              // plus a random time up to this: links overtake each other
  std::uint64_t cut_after = 0;     // frames received on one connection; 0: never
  std::uint64_t silent_after = 0;  // frames received from all peers; later ones are ignored
  std::atomic<bool> silent{false};
  std::atomic<std::uint64_t> received{0};

  bool is_any() const {
    return delay != Duration{} || reorder != Duration{} || cut_after != 0 || silent_after != 0 ||
           silent.load(std::memory_order_relaxed);
  }
  // How long to wait before the next bytes are handled.
  Duration hold() const;

  // "delay=2ms,reorder=5ms,cut-after=100,silent-after=50"; times in us, ms or s. kInvalidArgument
  // names the error and the allowed values.
  static Result<std::shared_ptr<Faults>> parse(std::string_view text);
  // MEMSPAN_FAULTS; null if unset.
  static Result<std::shared_ptr<Faults>> from_environment();
};

}  // namespace memspan::inline transport
