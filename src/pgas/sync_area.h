// SPDX-License-Identifier: Apache-2.0
// The shared memory in which the members of a team on one node synchronise: a flag for each member
// that carries a payload of a few words, a central counter, and small eager buffers.
//
//   | counter line | released line | slot 0 | slot 1 | ... | buffer 0 | buffer 1 | ...
//
//   slot i    lines, used in turn: | sequence | 7 words | of member i
//   buffer i  eager buffers of eager_bytes, used in turn
//
// The area is in the internal area of the team's first member on the node and starts as zeros. It
// has a slot for every member; the node's first member writes those of members on other nodes
// (node_barrier.h). Numbers only grow: barrier k of the team is number k, so nothing is ever
// reset. With t turns a member may write its line or buffer of barrier k + t once all have entered
// barrier k + 1, since all have then read barrier k. Two suffice for barriers. Small teams have
// more, so that the root of broadcasts need not wait for the others at each: if processes share
// cores, each such wait is a turn of the scheduler. Lines are small and have the most.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/cpu.h"

namespace memspan::inline pgas {

inline constexpr int kPayloadWords = 7;
// The last of them is for the call's signature (TeamBarrier::barrier_checked).
inline constexpr int kSignatureWord = kPayloadWords - 1;

struct alignas(kCacheLine) SyncLine {
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> words[kPayloadWords];
};
static_assert(2 * sizeof(SyncLine) == kFalseSharingRange);

struct SyncHeader {
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> entered;   // all members, ever
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> released;  // the last barrier that is over
  std::atomic<std::uint64_t> departed;  // members that are done with the area
  // A team of the living that a member proposes after deaths (TeamShrink); 0 none.
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> proposal;
  // Why the node's first member could not finish a barrier among nodes, after which no other can
  // be: | 1 | code: 31 | PE that is lost + 1: 32 |; 0 none.
  std::atomic<std::uint64_t> failure;
};

// A view of an area at its address in this process; owns nothing.
class SyncArea {
 public:
  SyncArea() = default;
  SyncArea(std::byte* base, int members)
      : base_(base),
        members_(members),
        turns_(turns_for(members)),
        eager_turns_(eager_turns_for(members)) {}

  // Members of a small team.
  static constexpr int kMostWithManyTurns = 8;

  static std::size_t bytes_for(int members) {
    return sizeof(SyncHeader) + static_cast<std::size_t>(members) *
                                    (turns_for(members) * sizeof(SyncLine) +
                                     eager_turns_for(members) * eager_bytes_for(members));
  }
  // Powers of two.
  static std::uint64_t turns_for(int members) { return members <= kMostWithManyTurns ? 32 : 2; }
  static std::uint64_t eager_turns_for(int members) {
    return members <= kMostWithManyTurns ? 4 : 2;
  }
  // Large teams have none: their medium messages travel like large ones.
  static std::size_t eager_bytes_for(int members) { return members <= 128 ? 2048 : 0; }

  SyncHeader& header() const { return *reinterpret_cast<SyncHeader*>(base_); }
  // For an area that is all zero and not used yet: the next barrier of all is number `last` + 1.
  void begin_after(std::uint64_t last) const {
    for (int member = 0; member < members_; ++member)
      for (std::uint64_t back = 0; back < turns_ && back <= last; ++back)
        line(member, last - back).sequence.store(last - back, std::memory_order_relaxed);
    header().released.store(last, std::memory_order_relaxed);
  }
  // The last barrier that a member has entered, and the last that any has.
  std::uint64_t last_barrier_of(int member) const {
    std::uint64_t last = 0;
    for (std::uint64_t turn = 0; turn < turns_; ++turn)
      last = std::max(last, line(member, turn).sequence.load(std::memory_order_acquire));
    return last;
  }
  std::uint64_t last_barrier() const {
    std::uint64_t last = 0;
    for (int member = 0; member < members_; ++member)
      last = std::max(last, last_barrier_of(member));
    return last;
  }
  std::uint64_t turns() const { return turns_; }
  std::uint64_t eager_turns() const { return eager_turns_; }
  SyncLine& line(int member, std::uint64_t sequence) const {
    return reinterpret_cast<SyncLine*>(base_ +
                                       sizeof(SyncHeader))[place_of(member, sequence, turns_)];
  }
  std::size_t eager_bytes() const { return eager_bytes_for(members_); }
  std::byte* eager_buffer(int member, std::uint64_t sequence) const {
    std::byte* const buffers =
        base_ + sizeof(SyncHeader) + static_cast<std::size_t>(members_) * turns_ * sizeof(SyncLine);
    return buffers + place_of(member, sequence, eager_turns_) * eager_bytes();
  }

 private:
  static std::size_t place_of(int member, std::uint64_t sequence, std::uint64_t turns) {
    return static_cast<std::size_t>(member) * turns + (sequence & (turns - 1));
  }

  std::byte* base_ = nullptr;
  int members_ = 0;
  std::uint64_t turns_ = 2;
  std::uint64_t eager_turns_ = 2;
};

}  // namespace memspan::inline pgas
