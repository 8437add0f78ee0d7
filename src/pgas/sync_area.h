// SPDX-License-Identifier: Apache-2.0
// The shared memory in which the members of a team on one node synchronise: a flag for each member
// that carries a payload of a few words, a central counter, and small eager buffers.
//
//   | counter line | released line | slot 0 | slot 1 | ... | buffer 0 | buffer 1 | ...
//
//   slot i    (128 B) two lines, used in turn: | sequence | 7 words | of member i
//   buffer i  two eager buffers of eager_bytes, used in turn
//
// The area lies in the internal area of the team's first member on the node and starts as zeros. It
// has a slot for every member; those of members on other nodes are written by the node's first
// member (team_nodes.h). Numbers only grow: barrier k of the team is number k, so nothing is ever
// reset. A member may write its line or buffer of barrier k + 2 once barrier k + 1 is over, since
// by then everybody has read barrier k: that is why two suffice.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cpu.h"

namespace memspan {

inline constexpr int kPayloadWords = 7;
// The last of them is for the call's signature (Team::barrier_checked).
inline constexpr int kSignatureWord = kPayloadWords - 1;

struct SyncSlot {
  struct alignas(kCacheLine) Line {
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::uint64_t> words[kPayloadWords];
  };
  Line lines[2];
};
static_assert(sizeof(SyncSlot) == kFalseSharingRange);

struct SyncHeader {
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> entered;   // all members, ever
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> released;  // the last barrier that is over
  std::atomic<std::uint64_t> departed;  // members that are done with the area
  // A team of the living that a member proposes after deaths (Team::shrink); 0 none.
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> proposal;
  // Why the node's first member could not finish a barrier among nodes, after which no other can
  // be: | 1 | code: 31 | PE that is lost + 1: 32 |; 0 none.
  std::atomic<std::uint64_t> failure;
};

// A view of an area at its address in this process; owns nothing.
class SyncArea {
 public:
  SyncArea() = default;
  SyncArea(std::byte* base, int members) : base_(base), members_(members) {}

  static std::size_t bytes_for(int members) {
    return sizeof(SyncHeader) +
           static_cast<std::size_t>(members) * (sizeof(SyncSlot) + 2 * eager_bytes_for(members));
  }
  // Large teams have none: their medium messages go the way of the large ones.
  static std::size_t eager_bytes_for(int members) { return members <= 128 ? 2048 : 0; }

  SyncHeader& header() const { return *reinterpret_cast<SyncHeader*>(base_); }
  // Of an area that is all zero and not used yet: the next barrier of all is number `last` + 1.
  void begin_after(std::uint64_t last) const {
    for (int member = 0; member < members_; ++member) {
      line(member, last).sequence.store(last, std::memory_order_relaxed);
      if (last > 0) line(member, last - 1).sequence.store(last - 1, std::memory_order_relaxed);
    }
    header().released.store(last, std::memory_order_relaxed);
  }
  // The last barrier that a member has entered.
  std::uint64_t last_barrier() const {
    std::uint64_t last = 0;
    for (int member = 0; member < members_; ++member)
      for (std::uint64_t turn = 0; turn < 2; ++turn)
        last = std::max(last, line(member, turn).sequence.load(std::memory_order_acquire));
    return last;
  }
  SyncSlot::Line& line(int member, std::uint64_t sequence) const {
    auto* slots = reinterpret_cast<SyncSlot*>(base_ + sizeof(SyncHeader));
    return slots[member].lines[sequence & 1];
  }
  std::size_t eager_bytes() const { return eager_bytes_for(members_); }
  std::byte* eager_buffer(int member, std::uint64_t sequence) const {
    std::byte* buffers =
        base_ + sizeof(SyncHeader) + static_cast<std::size_t>(members_) * sizeof(SyncSlot);
    return buffers + (2 * static_cast<std::size_t>(member) + (sequence & 1)) * eager_bytes();
  }

 private:
  std::byte* base_ = nullptr;
  int members_ = 0;
};

}  // namespace memspan
