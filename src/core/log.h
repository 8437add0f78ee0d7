// SPDX-License-Identifier: Apache-2.0
// One line at a time to stderr (never stdout), or to the caller's own function.
//
// Modules return a Status instead of logging; capi and tools log. Data paths never log.
#pragma once

#include <array>

#include "core/clock.h"
#include "core/status.h"

namespace memspan::inline core {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarn = 2, kError = 3, kFatal = 4 };

using LogSink = void (*)(int level, const char* line);

// Thread-safe. Lines below the level (default kWarn, or MEMSPAN_LOG_LEVEL / SHMEM_LOG_LEVEL) are
// dropped. One system call writes a line, so that lines of several processes do not mix.
void log_line(LogLevel level, std::string_view line);
// For errors that a program may repeat endlessly: a thread writes only as many lines as LineLimit
// allows. The next line that is written reports how many were dropped.
void log_line_limited(LogLevel level, std::string_view line);

// kInvalidArgument if the environment names an unknown level.
Status check_log_environment();

void set_log_level(LogLevel level);
LogLevel log_level();

// Sends lines to `sink` instead of stderr; nullptr restores stderr. Any thread may call the sink.
// The sink must not call into memspan.
void set_log_sink(LogSink sink);

// A prefix for every line, e.g. "PE 3"; empty removes it. Not thread-safe: set it once at start.
void set_log_identity(std::string_view identity);

// Limits the lines of one kind that a source writes, so that repeated failures do not fill the log:
// at most 5 lines in any 7 s. One thread at a time. The caller passes the time.
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

}  // namespace memspan::inline core
