// SPDX-License-Identifier: Apache-2.0
// The records of an all-gather or a creation (all_gather.h): a slot for each rank, and the last
// decision. An epoch is one all-gather of one name.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "store/recipes/contributions.h"

namespace memspan::inline store {

// One call of one member. A value.
struct EpochCaller {
  int rank = 0;
  std::uint64_t nonce = 0;  // unique to this call
  std::uint64_t lease = 0;
  std::string member;
  std::string alive = {};  // a key that exists as long as the caller does; empty: its slot

  static void fields(auto& codec, auto& self) {
    codec(self.rank, self.nonce, self.lease, self.member, self.alive);
  }
};

// The content of a rank's slot. A value.
struct EpochSlot {
  enum class State : std::uint8_t {
    kEmpty = 0,    // its caller exists, but is not calling
    kWaiting = 1,  // its caller waits, or the decision about it has just been written
    kGaveUp = 2,   // its caller waited in vain for an all-gather; the part still counts
  };
  friend constexpr State last_of(State) { return State::kGaveUp; }
  static constexpr std::string_view kWhat = "slot of an all-gather";

  State state = State::kEmpty;
  EpochCaller caller;
  EpochCaller met = {};         // rank 0 of the caller's last complete all-gather, nonce 0: none
  std::int64_t gave_up_at = 0;  // milliseconds of the system's clock; 0: it did not
  int size = 0;                 // of the epoch, as the caller says
  Contribution part = {};       // unless the slot is empty

  bool is_waiting() const { return state == State::kWaiting; }
  static void fields(auto& codec, auto& self) {
    codec(self.state, self.caller, self.met, self.gave_up_at, self.size, self.part);
  }
};
using EpochSlots = std::map<int, EpochSlot>;  // by rank

// Outcome of the last epoch. Each one is unique; the first one has the serial number 1. A value.
struct EpochDecision {
  static constexpr std::string_view kWhat = "decision of an all-gather";

  std::uint64_t serial = 0;
  Status status = {};
  std::vector<EpochCaller> decided = {};  // by rank, those that the status concerns
  std::vector<std::string> parts = {};    // of those, if the status is kOk
  std::vector<EpochCaller> last = {};     // callers of the last complete epoch
  EpochCaller lost = {};                  // one of those that has gone, nonce 0: none
  std::set<std::uint64_t> consumed = {};  // nonces in slots whose epoch is over

  bool concerns(std::uint64_t nonce) const {
    return std::any_of(decided.begin(), decided.end(),
                       [&](const EpochCaller& caller) { return caller.nonce == nonce; });
  }
  // The slot's part counts in the next epoch of that many members. Another size is a failure as
  // long as the caller waits.
  bool leaves_open(const EpochSlot& slot, int size) const {
    return slot.state != EpochSlot::State::kEmpty && !consumed.contains(slot.caller.nonce) &&
           (slot.is_waiting() || slot.size == size);
  }
  // Begins the next decision, which does not concern any caller yet.
  EpochDecision next(const EpochSlots& slots) const {
    EpochDecision next{.serial = serial + 1, .last = last, .lost = lost};
    for (const auto& [rank, slot] : slots)
      if (consumed.contains(slot.caller.nonce)) next.consumed.insert(slot.caller.nonce);
    return next;
  }
  static void fields(auto& codec, auto& self) {
    codec(self.serial, self.status, self.decided, self.last, self.lost, self.consumed);
    codec.rest(self.parts);
  }
};

enum class EpochKind { kAllgather, kCreateGroup };

// The keys of one name, each beginning with it. A value.
struct EpochKeys {
  std::string prefix;

  static EpochKeys of(EpochKind kind, std::string_view name) {
    return {fmt::format("{}/{}/", name, kind == EpochKind::kAllgather ? "allgather" : "create")};
  }

  // All keys that rank 0 writes before it completes an epoch.
  std::string first_prefix() const { return prefix + "first/"; }
  std::string decision() const { return first_prefix() + "decision"; }
  std::string announcement() const { return prefix + "announcement"; }
  // The slots of all other ranks.
  std::string slots_prefix() const { return prefix + "slot/"; }
  std::string slot(int rank) const {
    return rank == 0 ? first_prefix() + "slot" : rank_key(slots_prefix(), rank);
  }
};

}  // namespace memspan::inline store
