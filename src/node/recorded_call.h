// SPDX-License-Identifier: Apache-2.0
// Counts a public call while this lives, as far as recording is on; else it costs one branch that
// is always taken alike.
#pragma once

#include "core/status.h"
#include "node/counters.h"

namespace memspan {

// Lives on the stack of the thread that makes the call. `call` lives for ever.
class RecordedCall {
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
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

  // How it ended; well, unless this says otherwise. Passes it on.
  Status ends(Status outcome) {
    is_good_ = outcome.is_ok();
    return outcome;
  }

 private:
  // Where there is a trace or a table.
  void begin();
  void end() const;

  const CallKind kind_;
  const bool is_on_;
  bool is_good_ = true;
  const int peer_;  // a rank, or -1
  const char* const call_;
  const std::uint64_t bytes_;
  std::uint64_t begin_ = 0;  // 0: nobody wants its time
};

// A wait of this thread that began at `since` is over; `awaited` is a rank or kNobodyNamed.
void record_wait(const char* call, Clock::time_point since, int awaited);

}  // namespace memspan
