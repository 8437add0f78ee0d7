// SPDX-License-Identifier: Apache-2.0
// The file of a trace, to which the processes of a job add their events one after the other.
//
//   {"displayTimeUnit":"ns","otherData":{"owner":"job-1f2e"},"traceEvents":[
//   {an event},
//   {an event}
//   ]}
//
// The first line names the owner. A file of another job is overwritten.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "observe/counters.h"

namespace memspan {

// A value.
struct TraceOwner {
  MemberKind kind = MemberKind::kNone;
  std::string name;
  int rank = 0;
};

// The number of the process in the timeline: its rank, or an endpoint's process number.
int trace_process_of(const TraceOwner& owner);
// `pattern` with %r, %p and %% replaced. Endpoints have no common file: without %p the process
// number is appended.
std::string trace_path(std::string_view pattern, const TraceOwner& owner);

// `events` are lines of JSON, at least one; `lost` is how many older ones there were. Waits for
// others up to 10 s.
Status append_to_trace(std::string_view pattern, const TraceOwner& owner,
                       const std::vector<std::string>& events, std::uint64_t lost);

}  // namespace memspan
