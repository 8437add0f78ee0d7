// SPDX-License-Identifier: Apache-2.0
// Counts a public call while this lives, as far as recording is on; else it costs one branch that
// is always taken alike.
#pragma once

#include "node/counters.h"
#include "node/trace.h"

namespace memspan {

// Lives on the stack of the thread that makes the call. `call` lives for ever.
class RecordedCall {
 public:
  RecordedCall(CallKind kind, const char* call, int peer, std::uint64_t bytes)
      : kind_(kind), is_on_(is_recording()), peer_(peer), call_(call), bytes_(bytes) {
    if (is_on_ && recording.traces.load(std::memory_order_relaxed)) [[unlikely]]
      begin_ = nanoseconds_of(Clock::now());
  }
  ~RecordedCall() {
    if (!is_on_) return;
    count_call(kind_, bytes_);
    if (begin_ != 0) [[unlikely]]
      trace_call(kind_, call_, peer_, bytes_, begin_);
  }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

 private:
  const CallKind kind_;
  const bool is_on_;
  const int peer_;  // a rank, or -1
  const char* const call_;
  const std::uint64_t bytes_;
  std::uint64_t begin_ = 0;  // 0: it is not traced
};

// A wait of this thread that began at `since` is over; `awaited` is a rank or kNobodyNamed.
void record_wait(const char* call, Clock::time_point since, int awaited);

}  // namespace memspan
