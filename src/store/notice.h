// SPDX-License-Identifier: Apache-2.0
// A call that waits longer than this for a store or other members logs that once: why, where and
// until when.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/clock.h"

namespace memspan::inline store {

inline constexpr Duration kSilentWait = std::chrono::seconds(3);

// "for 117 s more": the rest of a long wait.
inline std::string until(const Deadline& deadline) {
  if (deadline.is_never()) return "until it comes";
  return fmt::format("for {:.0f} s more", to_seconds(deadline.remaining()));
}

}  // namespace memspan::inline store
