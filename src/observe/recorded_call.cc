// SPDX-License-Identifier: Apache-2.0
#include "observe/recorded_call.h"

#include "observe/call_table.h"
#include "observe/trace.h"

namespace memspan {

void RecordedCall::begin() {
  if (recording.tables.load(std::memory_order_relaxed)) call_table().begin(call_);
  begin_ = nanoseconds_of(Clock::now());
}

void RecordedCall::end() const {
  if (recording.tables.load(std::memory_order_relaxed))
    call_table().end(call_, nanoseconds_of(Clock::now()) - begin_, is_good_);
  if (recording.traces.load(std::memory_order_relaxed))
    trace_call(kind_, call_, peer_, bytes_, begin_);
}

void record_wait(const char* call, Clock::time_point since, int awaited) {
  const std::uint64_t begin = nanoseconds_of(since);
  const std::uint64_t end = nanoseconds_of(Clock::now());
  ThreadCounters& own = thread_counters();
  add_own(own.waits, 1);
  add_own(own.waited_ns, end - begin);
  if (recording.traces.load(std::memory_order_relaxed)) trace_wait(call, awaited, begin, end);
}

}  // namespace memspan
