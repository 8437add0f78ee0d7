// SPDX-License-Identifier: Apache-2.0
// Counts how often each public call began, succeeded and failed, and how long the successes took.
// The columns are those of MemFabric's ptracer, with memspan's names.
//
// With MEMSPAN_PTRACER=FOLDER the library appends the table to FOLDER/ptracer_PID.dat every
// CallTableFile::kPeriod and at the end. Once the file would exceed kMostBytes, it starts over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>

#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

// Thread-safe.
class CallTable {
 public:
  // `call` must live forever.
  void begin(const char* call) MEMSPAN_EXCLUDES(mutex_);
  // The time of a failed call is not counted.
  void end(const char* call, std::uint64_t nanoseconds, bool is_good) MEMSPAN_EXCLUDES(mutex_);

  // One line for each call that has begun, sorted by name, each with a newline.
  std::string rows(std::string_view time) const MEMSPAN_EXCLUDES(mutex_);
  static std::string heading();

 private:
  struct Row {
    std::uint64_t begun = 0;
    std::uint64_t good = 0;
    std::uint64_t bad = 0;
    std::uint64_t least_ns = UINT64_MAX;
    std::uint64_t most_ns = 0;
    std::uint64_t total_ns = 0;
  };
  mutable Mutex mutex_;
  std::map<std::string_view, Row> rows_ MEMSPAN_GUARDED_BY(mutex_);
};

// The table of this process; never destroyed.
CallTable& call_table();
// Call it in a child of fork(), whose table is then empty.
void forget_call_table_in_child();

// Runs a thread until it is destroyed, and then writes the table once more. The first failed write
// is logged as a warning, later ones are not.
class CallTableFile : NotCopyable {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(10);
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  // Null if the variable is not set.
  static Result<std::unique_ptr<CallTableFile>> start_if_asked();
  ~CallTableFile();

 private:
  explicit CallTableFile(std::string path) : path_(std::move(path)) {}
  void run() MEMSPAN_EXCLUDES(mutex_);
  void write();

  const std::string path_;
  bool has_warned_ = false;
  bool has_begun_ = false;
  Mutex mutex_;
  ConditionVariable ends_;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Appends the table to a file that begins with a heading. `begins_anew` empties the file first.
Status add_call_table(const std::string& path, bool begins_anew, std::size_t most_bytes);

}  // namespace memspan
