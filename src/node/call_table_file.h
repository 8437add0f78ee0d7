// SPDX-License-Identifier: Apache-2.0
// With MEMSPAN_PTRACER=FOLDER the library appends the table of calls (call_table.h) to
// FOLDER/ptracer_PID.dat every MEMSPAN_PTRACER_SECONDS (10) and at the end. Once the file would
// exceed kMostBytes, it starts over.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

// Runs a thread until it is destroyed, and then writes the table once more. The first failed write
// is logged as a warning, later ones are not.
class CallTableFile {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  // Null if the variable is not set. kInvalidArgument for an invalid number of seconds.
  static Result<std::unique_ptr<CallTableFile>> start_if_asked();
  ~CallTableFile();
  CallTableFile(const CallTableFile&) = delete;
  CallTableFile& operator=(const CallTableFile&) = delete;

 private:
  CallTableFile(std::string path, Duration period) : path_(std::move(path)), period_(period) {}
  void run() MEMSPAN_EXCLUDES(mutex_);
  void write();

  const std::string path_;
  const Duration period_;
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
