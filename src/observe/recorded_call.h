// SPDX-License-Identifier: Apache-2.0
// Counts a public call for the lifetime of this object if recording is on. Otherwise it costs one
// well-predicted branch.
#pragma once

#include "observe/counters.h"

namespace memspan {

// Lives on the stack of the thread that makes the call. `call` must live forever.
class RecordedCall : NotCopyable {
 public:
  RecordedCall(CallKind kind, const char* call, int peer, std::uint64_t bytes)
      : kind_(kind), is_on_(is_recording()), peer_(peer), call_(call), bytes_(bytes) {
    if (is_on_ && !only_counts()) [[unlikely]]
      begin();
  }
  ~RecordedCall() {
    if (!is_on_) return;
    count_call(kind_, bytes_);
    if (begin_ != 0) [[unlikely]]
      end();
  }

  // Sets the outcome of the call, by default success, and returns it.
  Status ends(Status outcome) {
    is_good_ = outcome.is_ok();
    return outcome;
  }

 private:
  // Used only with a trace or a table.
  void begin();
  void end() const;

  const CallKind kind_;
  const bool is_on_;
  bool is_good_ = true;
  const int peer_;  // a rank, or -1
  const char* const call_;
  const std::uint64_t bytes_;
  std::uint64_t begin_ = 0;  // 0: the time is not needed
};

// Records a wait of this thread from `since` until now; `awaited` is a rank or kNobodyNamed.
void record_wait(const char* call, Clock::time_point since, int awaited);

}  // namespace memspan
