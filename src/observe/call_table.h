// SPDX-License-Identifier: Apache-2.0
// Counts how often each public call began, succeeded and failed, and how long the successes took.
// The columns are those of MemFabric's ptracer, with memspan's names.
//
// With MEMSPAN_PTRACER=FOLDER the library appends the table to FOLDER/ptracer_PID.dat every
// CallTableFile::kPeriod and at the end. Once the file would exceed kMostBytes, it starts over.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <new>
#include <thread>

#include "core/environment.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/private_file.h"
#include "core/thread.h"

namespace memspan::inline observe {

// Thread-safe.
class CallTable {
 public:
  // `call` must live forever.
  void begin(const char* call) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++rows_[call].begun;
  }
  // The time of a failed call is not counted.
  void end(const char* call, std::uint64_t nanoseconds, bool is_good) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Row& row = rows_[call];
    ++(is_good ? row.good : row.bad);
    if (!is_good) return;
    const std::uint64_t took = std::max<std::uint64_t>(nanoseconds, 1);
    row.total_ns += took;
    row.least_ns = std::min(row.least_ns, took);
    row.most_ns = std::max(row.most_ns, took);
  }

  // One line for each call that has begun, sorted by name, each with a newline.
  std::string rows(std::string_view time) const MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::string text;
    for (const auto& [call, row] : rows_) {
      const auto total = static_cast<double>(row.total_ns);
      const auto good = static_cast<double>(row.good);
      text += fmt::format(kLine, time, call, row.begun, row.good, row.bad,
                          row.begun - row.good - row.bad,
                          microseconds(row.good == 0 ? 0 : static_cast<double>(row.least_ns)),
                          microseconds(static_cast<double>(row.most_ns)),
                          microseconds(row.good == 0 ? 0 : total / good), microseconds(total));
    }
    return text;
  }
  static std::string heading() {
    return fmt::format(kLine, "TIME", "NAME", "BEGIN", "GOOD_END", "BAD_END", "ON_FLY", "MIN(us)",
                       "MAX(us)", "AVG(us)", "TOTAL(us)");
  }

 private:
  struct Row {
    std::uint64_t begun = 0;
    std::uint64_t good = 0;
    std::uint64_t bad = 0;
    std::uint64_t least_ns = UINT64_MAX;
    std::uint64_t most_ns = 0;
    std::uint64_t total_ns = 0;
  };
  static constexpr std::string_view kLine =
      "{:<19} {:<40} {:>12} {:>12} {:>8} {:>8} {:>12} {:>12} {:>12} {:>14}\n";
  static std::string microseconds(double nanoseconds) {
    return fmt::format("{:.3f}", nanoseconds * 1e-3);
  }

  mutable Mutex mutex_;
  std::map<std::string_view, Row> rows_ MEMSPAN_GUARDED_BY(mutex_);
};

// The table of this process; never destroyed.
inline CallTable& call_table() {
  static CallTable* const only = new CallTable;
  return *only;
}
// Call it in a child of fork(), whose table is then empty.
inline void forget_call_table_in_child() {
  new (&call_table()) CallTable;  // the parent's threads may hold it
}

// Appends the table to a file that begins with a heading. `begins_anew` empties the file first.
inline Status add_call_table(const std::string& path, bool begins_anew, std::size_t most_bytes) {
  MEMSPAN_PASS_ASSIGN(const Fd file, open_output_file(path, O_WRONLY | O_APPEND, 0644));
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return Status::from_errno("looking at " + path);
  std::tm now{};
  const std::time_t seconds = std::time(nullptr);
  char time[sizeof "2026-01-01 00:00:00"];
  std::strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &now));
  std::string text = call_table().rows(time);
  const auto there = static_cast<std::size_t>(status.st_size);
  if (begins_anew || there == 0 || there + text.size() > most_bytes) {
    if (ftruncate(file.get(), 0) != 0) return Status::from_errno("emptying " + path);
    text.insert(0, CallTable::heading());
  }
  const int error = write_all(file.get(), text);
  return error == 0 ? Status::ok() : Status::from_errno("writing " + path, error);
}

// Runs a thread until it is destroyed, and then writes the table once more. The first failed write
// is logged as a warning, later ones are not.
class CallTableFile : NotCopyable {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(10);
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  // Null if the variable is not set.
  static Result<std::unique_ptr<CallTableFile>> start_if_asked() {
    const std::string folder = environment_or("MEMSPAN_PTRACER", "");
    if (folder.empty()) return std::unique_ptr<CallTableFile>();
    std::unique_ptr<CallTableFile> made(
        new CallTableFile(fmt::format("{}/ptracer_{}.dat", folder, getpid())));
    made->write();
    MEMSPAN_TRY_ASSIGN(made->thread_,
                       start_thread("the table of calls", [file = made.get()] { file->run(); }),
                       "MEMSPAN_PTRACER");
    return made;
  }
  ~CallTableFile() {
    if (!thread_.joinable()) return;
    {
      MutexLock lock(mutex_);
      is_ending_ = true;
      ends_.notify_all();
    }
    thread_.join();
  }

 private:
  explicit CallTableFile(std::string path) : path_(std::move(path)) {}
  void run() MEMSPAN_EXCLUDES(mutex_) {
    for (bool is_over = false; !is_over;) {
      {
        const Deadline next = Deadline::after(kPeriod);
        MutexLock lock(mutex_);
        while (!is_ending_ && !next.has_passed()) ends_.wait_until(mutex_, next);
        is_over = is_ending_;
      }
      write();
    }
  }
  void write() {
    const Status added = add_call_table(path_, !std::exchange(has_begun_, true), kMostBytes);
    if (!added.is_ok() && !std::exchange(has_warned_, true))
      log_line(LogLevel::kWarn, fmt::format("the table of calls is lost: {}", added.message()));
  }

  const std::string path_;
  bool has_warned_ = false;
  bool has_begun_ = false;
  Mutex mutex_;
  ConditionVariable ends_;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace memspan::inline observe
