// SPDX-License-Identifier: Apache-2.0
// The shared memory in which one team on one host meets: arrival flags that carry a few words
// each, a central counter, and small scratch buffers.
//
//   | counter line | released line | slot 0 | slot 1 | ... | scratch 0 | scratch 1 | ...
//
//   slot i     (128 B) two lines, used in turn: | sequence | 7 words | of member i
//   scratch i  two buffers of scratch_bytes, used in turn
//
// The area lies in the internal area of the team's first member and starts as zeros. Numbers only
// grow: meeting k of the team is number k, so nothing is ever reset. A member may write its line
// or buffer of meeting k + 2 once meeting k + 1 is over, since by then everybody has read
// meeting k: that is why two suffice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cpu.h"

namespace memspan {

inline constexpr int kMeetingWords = 7;
// The last of them is for what all members of a collective give alike (Team::meet_alike).
inline constexpr int kAlikeWord = kMeetingWords - 1;

struct SyncSlot {
  struct alignas(kCacheLine) Line {
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::uint64_t> words[kMeetingWords];
  };
  Line lines[2];
};
static_assert(sizeof(SyncSlot) == kFalseSharingRange);

struct SyncHeader {
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> arrivals;  // all members' arrivals, ever
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> released;  // the last meeting that is over
  std::atomic<std::uint64_t> departed;  // members that are done with the area
  // A team of the living that a member proposes after deaths (Team::shrink); 0 none.
  alignas(kFalseSharingRange) std::atomic<std::uint64_t> proposal;
};

// A view of an area at its address in this process; owns nothing.
class SyncArea {
 public:
  SyncArea() = default;
  SyncArea(std::byte* base, int members) : base_(base), members_(members) {}

  static std::size_t bytes_for(int members) {
    return sizeof(SyncHeader) +
           static_cast<std::size_t>(members) * (sizeof(SyncSlot) + 2 * scratch_bytes_for(members));
  }
  // Large teams get no scratch: their medium messages go the way of the large ones.
  static std::size_t scratch_bytes_for(int members) { return members <= 128 ? 2048 : 0; }

  SyncHeader& header() const { return *reinterpret_cast<SyncHeader*>(base_); }
  SyncSlot::Line& line(int member, std::uint64_t sequence) const {
    auto* slots = reinterpret_cast<SyncSlot*>(base_ + sizeof(SyncHeader));
    return slots[member].lines[sequence & 1];
  }
  std::size_t scratch_bytes() const { return scratch_bytes_for(members_); }
  std::byte* scratch(int member, std::uint64_t sequence) const {
    std::byte* buffers =
        base_ + sizeof(SyncHeader) + static_cast<std::size_t>(members_) * sizeof(SyncSlot);
    return buffers + (2 * static_cast<std::size_t>(member) + (sequence & 1)) * scratch_bytes();
  }

 private:
  std::byte* base_ = nullptr;
  int members_ = 0;
};

}  // namespace memspan
