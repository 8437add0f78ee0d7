// SPDX-License-Identifier: Apache-2.0
// The counters and jobs of other processes of this user on this host. A process is found by its
// memfd in /proc/PID/fd, which the kernel shows only to its user and to root.
#pragma once

#include <optional>

#include "node/segment.h"
#include "observe/metrics.h"

namespace memspan {

struct ProcessSeen {
  CountersSeen counters;
  std::string command;                           // of /proc/PID/comm
  char state = '?';                              // of /proc/PID/stat: R, S, T...
  std::shared_ptr<const SegmentSeen> node = {};  // of its job; null without a job
};

// How many requests for stacks a process has accepted; nullopt if it is not visible.
std::optional<std::uint32_t> stack_requests_of(std::int32_t process);

// Keeps its mappings, so a second look is cheap. One thread at a time.
class ProcessReader : NotCopyable {
 public:
  ProcessReader();
  ~ProcessReader();

  // Every process that is a member of something now, in the order of process numbers.
  std::vector<ProcessSeen> look();

 private:
  struct Mapped;
  void find(std::int32_t process);

  std::map<std::int32_t, std::unique_ptr<Mapped>> found_;
};

}  // namespace memspan
