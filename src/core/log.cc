// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "core/environment.h"

namespace memspan::inline core {
namespace {

constexpr int kNotRead = -1;  // the environment says it at the first line

struct LogState {
  std::atomic<LogSink> caller_sink{nullptr};
  std::atomic<int> least_level{kNotRead};
  std::string prefix = "memspan: ";
};

// Never destroyed: lines may still come from exit handlers.
LogState& log_state() {
  static LogState* const only = new LogState;
  return *only;
}

Result<LogLevel> level_from_environment() {
  constexpr std::pair<std::string_view, LogLevel> kNames[] = {
      {"DEBUG", LogLevel::kDebug}, {"INFO", LogLevel::kInfo},   {"WARN", LogLevel::kWarn},
      {"ERROR", LogLevel::kError}, {"FATAL", LogLevel::kFatal},
  };
  for (const char* variable : {"MEMSPAN_LOG_LEVEL", "SHMEM_LOG_LEVEL"}) {
    const auto text = environment(variable);
    if (!text || text->empty()) continue;
    for (const auto& [name, level] : kNames)
      if (*text == name) return level;
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is \"{}\"; allowed are DEBUG, INFO, WARN, ERROR and FATAL",
                              variable, *text));
  }
  return LogLevel::kWarn;
}

}  // namespace

void log_line(LogLevel level, std::string_view line) {
  if (level < log_level()) return;
  if (LogSink callback = log_state().caller_sink.load(std::memory_order_acquire)) {
    callback(static_cast<int>(level), std::string(line).c_str());
    return;
  }
  const std::string text = fmt::format("{}{}\n", log_state().prefix, line);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void log_line_limited(LogLevel level, std::string_view line) {
  thread_local LineLimit limit;
  if (level < log_level()) return;
  const auto dropped = limit.admit(Clock::now());
  if (!dropped) return;
  if (*dropped == 0)
    log_line(level, line);
  else
    log_line(level,
             fmt::format("{} ({} lines of this thread before it were dropped: at most {} "
                         "in {} s are written)",
                         line, *dropped, LineLimit::kMostLines, to_seconds(LineLimit::kWindow)));
}

Status check_log_environment() {
  return level_from_environment().status();
}

void set_log_level(LogLevel level) {
  log_state().least_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

LogLevel log_level() {
  int level = log_state().least_level.load(std::memory_order_relaxed);
  if (level == kNotRead) {
    const auto asked = level_from_environment();
    const LogLevel first = asked.is_ok() ? *asked : LogLevel::kWarn;
    // If another thread has set it first, `level` is now that one.
    if (log_state().least_level.compare_exchange_strong(level, static_cast<int>(first)))
      return first;
  }
  return static_cast<LogLevel>(level);
}

void set_log_sink(LogSink sink) {
  log_state().caller_sink.store(sink, std::memory_order_release);
}

void set_log_identity(std::string_view identity) {
  log_state().prefix = identity.empty() ? "memspan: " : fmt::format("memspan: {}: ", identity);
}

void check_failed(const char* condition, const char* file, int line) {
  log_line(LogLevel::kFatal, std::string("internal error at ") + file + ":" + std::to_string(line) +
                                 ": " + condition + " does not hold");
  std::abort();
}

}  // namespace memspan::inline core
