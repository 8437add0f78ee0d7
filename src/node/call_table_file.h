// SPDX-License-Identifier: Apache-2.0
// MEMSPAN_PTRACER=FOLDER: FOLDER/ptracer_PID.dat gets the table of calls (call_table.h) anew every
// MEMSPAN_PTRACER_SECONDS (10) and at the end, below the earlier ones. From kMostBytes on it begins
// again.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

// Runs a thread of its own until it is destroyed, which writes the table once more. What cannot be
// written is a warning, once.
class CallTableFile {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  // Null where the variable is not set. kInvalidArgument for a number of seconds that is not
  // allowed.
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

// Adds the table to a file, which begins with a heading. `begins_anew`: what is there goes.
Status add_call_table(const std::string& path, bool begins_anew, std::size_t most_bytes);

}  // namespace memspan
