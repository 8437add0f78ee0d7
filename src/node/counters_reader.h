// SPDX-License-Identifier: Apache-2.0
// The counters of other processes of this user on this host, as they are now (node/counters.h).
//
// A process is found by its memfd in /proc/PID/fd, which the kernel shows to its user and to root
// only. What is read is what a process wrote about itself, perhaps while it writes, so numbers of
// one process may be a few calls apart, and texts are cut off and made printable.
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
  std::uint64_t waited_ns = 0;  // of all threads, in waits that are over
  std::uint32_t threads = 0;    // that live and have counted or waited
  std::uint32_t uncounted_threads = 0;
  std::vector<WaitSeen> waiting;  // the longest first

  // Waits that go on included, where calls are counted. One that ends just now may be in it twice
  // or not at all.
  std::uint64_t waited_so_far_ns() const;
};

// `now_ns` is CLOCK_MONOTONIC's.
CountersSeen read_counters(const CountersRegion& region, std::uint64_t now_ns);

struct ProcessSeen {
  CountersSeen counters;
  std::string command;                           // of /proc/PID/comm
  char state = '?';                              // of /proc/PID/stat: R, S, T...
  std::shared_ptr<const SegmentSeen> node = {};  // of its job; null where it is in none
};

// How many requests for stacks a process has taken up; nullopt when it is not seen.
std::optional<std::uint32_t> stack_requests_of(std::int32_t process);

// Keeps what it has mapped, so that a second look is cheap. One thread at a time.
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
