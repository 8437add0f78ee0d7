// SPDX-License-Identifier: Apache-2.0
// One call of an all-gather or a creation, and its records in the store: a slot for each rank, and
// the last decision. all_gather.h shows how the callers decide.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "store/fields.h"
#include "store/recipes/change_queue.h"
#include "store/recipes/contributions.h"

namespace memspan {

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
  std::string encode() const { return encode_record(*this); }
  static Result<EpochSlot> decode(std::string_view text) {
    return decode_record<EpochSlot>(text, "slot of an all-gather");
  }
};
using EpochSlots = std::map<int, EpochSlot>;  // by rank

// Outcome of the last epoch. Each one is unique. A value.
struct EpochDecision {
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
  // The lease is of a caller of the last complete epoch, and another one of those has gone.
  bool has_lost_one_of(std::uint64_t lease) const {
    return lost.nonce != 0 &&
           std::any_of(last.begin(), last.end(),
                       [lease](const EpochCaller& caller) { return caller.lease == lease; });
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
  std::string encode() const { return encode_record(*this); }
  // An empty text means that there is no decision yet.
  static Result<EpochDecision> decode(std::string_view text) {
    if (text.empty()) return EpochDecision();
    return decode_record<EpochDecision>(text, "decision of an all-gather");
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

// Time for a caller to withdraw after its deadline.
inline constexpr Duration kWithdrawal = std::chrono::seconds(1);

// The group that the callers of a creation make: its name, and the prefix of the members' keys.
std::string created_group_name(std::string_view name, const EpochDecision& decision);
std::string created_alive_prefix(std::string_view name);

// One caller's part in one epoch. One thread.
class EpochCall : NotCopyable {
 public:
  EpochCall(KeyValueStore& store, EpochKind kind, std::string_view name, int rank, int size,
            const Deadline& deadline, std::string_view alive = {});
  // To the others, a caller that could not empty its slot, for lack of memory or time, has left.
  ~EpochCall();

  // `nonce` is unique to this call. Returns the decision that includes it.
  Result<EpochDecision> run(std::uint64_t nonce, std::string_view mine);

 private:
  bool is_first() const { return rank_ == 0; }
  Result<EpochDecision> wait();
  Status read_decision(const Deadline& deadline);
  Result<EpochSlots> read_slots(const Deadline& deadline);
  Result<std::string> read_own_slot();
  // Tries until this caller has the slot. It may take that of a finished epoch.
  Status fill_slot(std::string before);
  // Rank 0 may have gone since this caller's last epoch, or found that another one has.
  Status look_for_first();
  // For a caller of the last epoch that has no slot any more.
  Status check_presence(const EpochCaller& caller) const;
  Status check_last_callers() const;
  // For rank 0. Decides what can be decided: that a caller has another size, that all have come, or
  // that one is gone.
  Status decide();
  // For the others: the parts of callers that gave up an all-gather count, so if that of rank 0 is
  // among them, the last one to come decides.
  Status complete_for_first();
  // False: some have not come. A caller that gives up a creation has not taken part: if it empties
  // its slot before it finds the announcement, it is not in the listing; if it finds it, it changes
  // the decision, which keeps this from deciding by an older listing.
  Result<bool> complete(const Deadline& deadline);
  Result<bool> complete_now(const Deadline& deadline);
  Status write_founders(const EpochDecision& decision);
  static Status is_gone(const EpochCaller& caller);
  // A caller that waited here, or one of the last epoch if rank 0 was also in it: kPeerLost.
  Result<std::optional<EpochCaller>> find_gone() const;
  // Writes the decision. False: reads the one that another caller has written instead.
  Result<bool> swap(EpochDecision next, const Deadline& deadline);
  // kPeerLost: this caller cannot take part any more.
  Status note_change(const StoreChange& change);
  Result<EpochDecision> finish();
  // Unless another caller has it now.
  Status change_slot(EpochSlot to, const Deadline& deadline);
  // Callers of a creation that gave up while this one waited have come.
  Status find_missing(const Deadline& deadline);
  // Returns a time-out, or what has been lost, unless the epoch has been decided with this caller.
  Result<EpochDecision> give_up(const Status& lost);
  // The decision about this caller may be among the changes: there are later ones, or it ended with
  // rank 0.
  Result<EpochDecision> find_decision(const Status& why, const Deadline& deadline);

  KeyValueStore& store_;
  const std::string alive_;
  const EpochKind kind_;
  const std::string name_;
  const EpochKeys keys_;
  const int rank_;
  const int size_;
  const Deadline deadline_;
  const std::int64_t began_;  // milliseconds of the system's clock
  ChangeQueue changes_;
  EpochSlot mine_;
  EpochDecision decision_ = {};
  std::string decision_text_ = {};   // as in the store
  bool has_begun_ = false;           // it has the slot, or may have it
  bool has_come_ = false;            // the change that filled the slot was among the changes
  EpochSlot first_ = {};             // of rank 0, as the others saw it last
  EpochSlots slots_ = {};            // as rank 0 saw them last; its own is filled
  std::map<int, EpochCaller> gone_;  // in rank 0: callers that waited when their slots were removed
};

}  // namespace memspan
