// SPDX-License-Identifier: Apache-2.0
// The counters of other processes of this user on this host, as they are now (node/counters.h).
//
// A process is found by its memfd in /proc/PID/fd, which the kernel shows only to its user and to
// root. Each process writes its own counters, perhaps while they are read, so its numbers may be a
// few calls apart. Texts are truncated and made printable.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "node/counters.h"
#include "node/segment.h"

namespace memspan {

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

struct ProcessSeen {
  CountersSeen counters;
  std::string command;                           // of /proc/PID/comm
  char state = '?';                              // of /proc/PID/stat: R, S, T...
  std::shared_ptr<const SegmentSeen> node = {};  // of its job; null without a job
};

// How many requests for stacks a process has accepted; nullopt if it is not visible.
std::optional<std::uint32_t> stack_requests_of(std::int32_t process);

// Keeps its mappings, so a second look is cheap. One thread at a time.
class CountersReader {
 public:
  CountersReader();
  ~CountersReader();
  CountersReader(const CountersReader&) = delete;
  CountersReader& operator=(const CountersReader&) = delete;

  // Every process that is a member of something now, in the order of process numbers.
  std::vector<ProcessSeen> look();

 private:
  struct Mapped;
  void find(std::int32_t process);

  std::map<std::int32_t, std::unique_ptr<Mapped>> found_;
};

}  // namespace memspan
