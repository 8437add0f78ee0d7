// SPDX-License-Identifier: Apache-2.0
// What the processes of the simulation tell each other: one mapping that all share, made before
// they are. Each field is written once, by its owner, before a meeting after which others read it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace memspan::scale {

inline constexpr int kMostMembers = 1024;
inline constexpr int kMostWorkers = 32;
inline constexpr int kReasonBytes = 256;

enum class Finish { kEnd, kDeath };

// A value. What the simulation is to do.
struct Plan {
  int members = 64;
  int workers = 0;  // processes; 0: as many as the descriptors need
  int barriers = 20;
  bool is_checked = false;
  Finish finish = Finish::kEnd;
  double limit_s = 120;  // of every wait
};

// Times are seconds of the monotonic clock.
struct MemberReport {
  double connected = 0;       // to the store
  double joined = 0;          // can talk to every peer
  double barriers_begun = 0;  // the counted ones
  double barriers_ended = 0;
  double pool_begun = 0;
  double pool_joined = 0;  // knows all members of the pool but the last
  double pool_heard = 0;   // has heard of the last one, too
  double end_begun = 0;
  double ended = 0;  // World::end() returned, or the death of the last member was noted
  std::uint64_t connections_joined = 0;  // that it made: after the join,
  std::uint64_t connections_used = 0;    // after the barriers,
  std::uint64_t connections_ended = 0;   // at the end
  std::uint64_t barrier_messages = 0;    // that it received in the counted barriers
  std::uint64_t barrier_bytes = 0;       // of these messages
  std::uint64_t text_bytes = 0;          // the longest that it exchanged at the store
  bool failed = false;
  char why[kReasonBytes] = {};
};

struct WorkerReport {
  std::uint64_t connected_bytes = 0;  // in use when its members were connected to the store
  std::uint64_t joined_bytes = 0;     // when they had joined
  std::uint64_t most_bytes = 0;       // ever
  std::uint64_t descriptors = 0;      // open after the barriers
};

struct Report {
  double begun = 0;
  std::atomic<double> killed{0};
  MemberReport members[kMostMembers];
  WorkerReport workers[kMostWorkers];
};

}  // namespace memspan::scale
