// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace memspan::perf {

// Nanoseconds of a clock that only goes forward.
inline double now_ns() {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count());
}

}  // namespace memspan::perf
