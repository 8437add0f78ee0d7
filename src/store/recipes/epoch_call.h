// SPDX-License-Identifier: Apache-2.0
// One call of an all-gather or a creation; all_gather.h shows how the callers decide.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/status.h"
#include "store/key_value_store.h"
#include "store/recipes/change_queue.h"
#include "store/recipes/epoch_records.h"

namespace memspan {

// Time for a caller to withdraw after its deadline.
inline constexpr Duration kWithdrawal = std::chrono::seconds(1);

// The group that the callers of a creation make: its name, and the prefix of the members' keys.
std::string created_group_name(std::string_view name, const EpochDecision& decision);
std::string created_alive_prefix(std::string_view name);

// One caller's part in one epoch. One thread.
class EpochCall {
 public:
  EpochCall(KeyValueStore& store, EpochKind kind, std::string_view name, int rank, int size,
            const Deadline& deadline, std::string_view alive = {});
  // To the others, a caller that could not empty its slot, for lack of memory or time, has left.
  ~EpochCall();
  EpochCall(const EpochCall&) = delete;
  EpochCall& operator=(const EpochCall&) = delete;

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
  // For rank 0.
  Status begin_deciding();
  // Decides what can be decided: that a caller has another size, that all have come, or that one is
  // gone.
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
