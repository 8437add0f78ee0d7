// SPDX-License-Identifier: Apache-2.0
// Whoever waits for a store or for other members longer than this says so, once: with what, where
// and until when.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/clock.h"

namespace memspan {

inline constexpr Duration kSilentWait = std::chrono::seconds(3);

// "for 117 s more": until when somebody waits who has waited for a while.
inline std::string until(const Deadline& deadline) {
  if (deadline.is_never()) return "until it comes";
  return fmt::format("for {:.0f} s more", to_seconds(deadline.remaining()));
}

}  // namespace memspan
