// SPDX-License-Identifier: Apache-2.0
// The timeline that MEMSPAN_TRACE asks for, in the trace-event format that Perfetto and Chrome
// read: ranks as processes, threads as tracks, each call and each wait an event with its bytes and
// peer.
//
// A thread keeps its last events in a ring of its own. When the process leaves what it was a member
// of it adds them to the file, which all processes of a job have in common: they take turns by a
// lock on it, and it is whole after each. A process that is killed loses its own events, and only
// those.
#pragma once

#include <optional>
#include <vector>

#include "observe/counters.h"

namespace memspan::inline observe {

// Whose timeline it is: the first membership of the process. A value.
struct TraceOwner {
  MemberKind kind = MemberKind::kNone;
  std::string name;
  int rank = 0;
};

// Reads MEMSPAN_TRACE (a file, in which %r is the rank and %p the process number). True when there
// is a file.
bool start_trace(TraceOwner owner);
// Time stamps of processes of several hosts are those of their wall clocks, which are as close to
// each other as the hosts keep them; of one host, CLOCK_MONOTONIC's.
void use_wall_clock_in_trace();

// A call or a wait. A value.
struct TraceEvent {
  const char* name;     // of the call; lives for ever
  std::uint64_t begin;  // nanoseconds of CLOCK_MONOTONIC
  std::uint64_t end;
  std::uint64_t bytes = 0;
  std::int32_t peer;                  // a rank, or kNobodyNamed
  std::optional<CallKind> kind = {};  // nullopt: a wait
};
// For the thread that did it.
void add_to_trace(const TraceEvent& event);

// Adds the recorded events to the file and forgets them. Logs failures. Thread-safe.
void write_trace();
// In a child of fork(), whose parent writes it.
void forget_trace_in_child();

// The file of a trace, to which the processes of a job add their events one after the other.
//
//   {"displayTimeUnit":"ns","otherData":{"owner":"job-1f2e"},"traceEvents":[
//   {an event},
//   {an event}
//   ]}
//
// The first line names the owner. A file of another job is overwritten.
//
// `pattern` with %r, %p and %% replaced. Endpoints have no common file: without %p the process
// number is appended.
std::string trace_path(std::string_view pattern, const TraceOwner& owner);

// `events` are lines of JSON, at least one; `lost` is how many older ones there were. Waits for
// others up to 10 s.
Status append_to_trace(std::string_view pattern, const TraceOwner& owner,
                       const std::vector<std::string>& events, std::uint64_t lost);

}  // namespace memspan::inline observe
