// SPDX-License-Identifier: Apache-2.0
// When a group gives the pages of its pipeline buffers back to the kernel: at the first small calls
// after a time without large ones. No thread does it, since threads would compete with the program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/clock.h"

namespace memspan::inline pgas {

// The part of a pipeline buffer that a call uses on all members: the first `bytes` of each
// `stride` bytes. A value.
struct BufferUse {
  std::size_t stride;
  std::size_t bytes;

  // Up to four pages of 4 KiB of the 128 in a buffer.
  bool is_small() const { return std::max(bytes, std::size_t{4096}) <= stride / 32; }
};

// One thread at a time.
class IdleBuffers {
 public:
  // To remove a member's pages and to touch them again took 0.8 ms. Members that share one core
  // spend at most 1 % of the time on it.
  explicit IdleBuffers(int members)
      : patience_(std::max<Duration>(std::chrono::seconds(1),
                                     std::chrono::milliseconds(100) * members)) {}

  // For each call, before it writes: whether buffers are to be given back now.
  bool is_due(const BufferUse& use) {
    if (!use.is_small()) {
      touched_ = 3;
      small_calls_ = 0;
      is_over_ = false;
      last_large_ = last_tick();
      return false;
    }
    return touched_ != 0 && (is_over_ || is_over());
  }
  // Whether buffer 0 or 1 has to be given back. It counts as given back from now on.
  bool take(unsigned buffer) {
    const unsigned bit = 1U << buffer;
    return (std::exchange(touched_, touched_ & ~bit) & bit) != 0;
  }

 private:
  // Reading the clock in each call would be measurable. Calls 1, 2, 4, ..., 64 do, then one of 64:
  // at a steady rate that is at most twice as late.
  [[gnu::noinline]] bool is_over() {
    ++small_calls_;
    if (small_calls_ % 64 == 0 || (small_calls_ & (small_calls_ - 1)) == 0)
      is_over_ = last_tick() - last_large_ >= patience_;
    return is_over_;
  }

  const Duration patience_;
  Clock::time_point last_large_;
  std::uint32_t small_calls_ = 0;  // since the last large one
  unsigned touched_ = 0;           // a bit for each buffer
  bool is_over_ = false;           // the last large call is old enough
};

}  // namespace memspan::inline pgas
