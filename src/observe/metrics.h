// SPDX-License-Identifier: Apache-2.0
// Counters of processes as text for Prometheus.
#pragma once

#include <array>
#include <vector>

#include "net/metrics_server.h"
#include "observe/counters.h"

namespace memspan {

// The counters of a process, as they are now (observe/counters.h). The process writes them, perhaps
// while they are read, so its numbers may be a few calls apart. Texts are truncated and made
// printable.

// Values.
struct CallCount {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
};

struct WaitSeen {
  std::int32_t thread = 0;
  std::string call;
  std::int32_t awaited = kNobodyNamed;
  std::uint64_t nanoseconds = 0;  // so far
};

struct MemberSeen {
  MemberKind kind = MemberKind::kNone;
  std::string name;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_used = 0;
};

struct CountersSeen {
  std::int32_t process = 0;
  bool counts_calls = false;
  std::vector<MemberSeen> members;
  std::array<CallCount, kCallKinds> calls;
  std::uint64_t waits = 0;
  std::uint64_t waited_ns = 0;  // of all threads, in finished waits
  std::uint32_t threads = 0;    // live ones that have counted or waited
  std::uint32_t uncounted_threads = 0;
  std::vector<WaitSeen> waiting;  // the longest first

  // Includes unfinished waits if calls are counted. A wait that ends during the read may be counted
  // twice or not at all.
  std::uint64_t waited_so_far_ns() const;
};

// `now_ns` is CLOCK_MONOTONIC's.
CountersSeen read_counters(const CountersRegion& region, std::uint64_t now_ns);

// The text, at most `room` letters, with ? for those that a terminal might obey.
std::string printable(const char* text, std::size_t room);

std::string metrics_of(const std::vector<CountersSeen>& processes);

// Serves this process's counters at MEMSPAN_METRICS, such as 127.0.0.1:9464; null if it is not set.
// If the address is taken, it logs a warning and returns null, because the process can continue.
// kInvalidArgument for an invalid address.
Result<std::unique_ptr<MetricsServer>> serve_own_metrics();
// `place` is HOST:PORT or [IPV6]:PORT; `what` names its source in messages.
Result<std::unique_ptr<MetricsServer>> serve_metrics(std::string_view what, std::string_view place,
                                                     MetricsServer::MakeText make_text);

}  // namespace memspan
