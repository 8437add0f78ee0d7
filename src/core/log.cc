// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>

#include "core/environment.h"
#include "core/line_limit.h"

namespace memspan {
namespace {

std::atomic<LogSink> caller_sink{nullptr};

// The whole line leaves in one write(2).
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  }
  void flush_() override {}
};

spdlog::level::level_enum native(LogLevel level) {
  return static_cast<spdlog::level::level_enum>(static_cast<int>(level) + SPDLOG_LEVEL_DEBUG);
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

// Built at the first line and never destroyed: lines may still come from exit handlers.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("memspan", std::make_shared<LineSink>());
    const auto level = level_from_environment();
    made->set_level(native(level.is_ok() ? *level : LogLevel::kWarn));
    made->set_pattern("memspan: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void log_line(LogLevel level, std::string_view line) {
  // Does not take the sink's lock: the caller's function may wait for a thread that also logs.
  if (LogSink callback = caller_sink.load(std::memory_order_acquire)) {
    if (level >= log_level()) callback(static_cast<int>(level), std::string(line).c_str());
    return;
  }
  logger().log(native(level), spdlog::string_view_t(line.data(), line.size()));
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
  logger().set_level(native(level));
}

LogLevel log_level() {
  return static_cast<LogLevel>(static_cast<int>(logger().level()) - SPDLOG_LEVEL_DEBUG);
}

void set_log_sink(LogSink sink) {
  caller_sink.store(sink, std::memory_order_release);
}

void set_log_identity(std::string_view identity) {
  logger().set_pattern(identity.empty() ? "memspan: %v"
                                        : "memspan: " + std::string(identity) + ": %v");
}

}  // namespace memspan
