// SPDX-License-Identifier: Apache-2.0
// One line at a time to stderr (never stdout), or to the caller's own function.
//
// Rooms return a Status instead of logging; capi and tools log. Nothing is logged on a data path.
#pragma once

#include <string_view>

#include "core/status.h"

namespace memspan {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarn = 2, kError = 3, kFatal = 4 };

using LogSink = void (*)(int level, const char* line);

// Thread-safe. Lines below the level (default kWarn, or MEMSPAN_LOG_LEVEL / SHMEM_LOG_LEVEL)
// are dropped. A line is written by one system call, so that lines of processes do not mix.
void log_line(LogLevel level, std::string_view line);
// The same for lines of what a program may do wrong again and again: no more of one thread than
// LineLimit allows, and the next that is written says how many were not.
void log_line_limited(LogLevel level, std::string_view line);

// kInvalidArgument when the environment names a level that there is not.
Status check_log_environment();

void set_log_level(LogLevel level);
LogLevel log_level();

// Lines go to `sink` instead of stderr; nullptr goes back to stderr. The sink may be called from
// any thread and must not call into memspan.
void set_log_sink(LogSink sink);

// Put in front of every line, e.g. "PE 3"; empty for none. Not thread-safe: set once at start.
void set_log_identity(std::string_view identity);

}  // namespace memspan
