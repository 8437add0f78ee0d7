// SPDX-License-Identifier: Apache-2.0
// Limits the lines of one kind that a source writes, so that repeated failures do not fill the log:
// at most 5 lines in any 7 s.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/clock.h"

namespace memspan {

// One thread at a time. The caller passes the time.
class LineLimit {
 public:
  static constexpr std::size_t kMostLines = 5;
  static constexpr Duration kWindow = std::chrono::seconds(7);

  // nullopt if a line must be dropped now; otherwise the number of lines that were dropped since
  // the last written one.
  std::optional<std::uint64_t> admit(Clock::time_point now) {
    auto& oldest = written_[next_];
    if (oldest && now - *oldest < kWindow) {
      ++dropped_;
      return std::nullopt;
    }
    oldest = now;
    next_ = (next_ + 1) % kMostLines;
    return std::exchange(dropped_, 0);
  }

 private:
  std::array<std::optional<Clock::time_point>, kMostLines> written_;  // a ring
  std::size_t next_ = 0;                                              // the oldest
  std::uint64_t dropped_ = 0;
};

}  // namespace memspan
