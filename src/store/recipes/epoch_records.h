// SPDX-License-Identifier: Apache-2.0
// The ad-hoc all-gather's records in the store: a slot for each rank, and the last decision.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "store/key_value_store.h"
#include "store/recipes/contributions.h"

namespace memspan {

// One call of one member. A value.
struct EpochCaller {
  int rank = 0;
  std::uint64_t nonce = 0;  // unique to this call
  std::uint64_t lease = 0;
  std::string member;

  std::string encode() const;
  static Result<EpochCaller> decode(std::string_view text);
};

// The content of a rank's slot. A value.
struct EpochSlot {
  enum class State : std::uint8_t {
    kEmpty = 0,   // its caller exists, but is not calling
    kFilled = 1,  // its caller waits, or the decision about it has just been written
    kGaveUp = 2,  // its caller waited in vain; the part still counts, unless it is consumed
  };
  State state = State::kEmpty;
  EpochCaller caller;
  std::uint64_t serial = 0;  // of the decision before it was filled
  int size = 0;              // of the epoch, as the caller says
  Contribution part = {};

  std::string encode() const;
  static Result<EpochSlot> decode(std::string_view text);
};

// A slot whose epoch is over. A value.
struct EpochConsumed {
  int rank = 0;
  std::uint64_t serial = 0;  // of the decision about it
};

// Outcome of the last epoch. Each one is unique. A value.
struct EpochDecision {
  std::uint64_t serial = 0;
  Status status = {};
  std::vector<EpochCaller> decided = {};                 // by rank, those that the status concerns
  std::vector<std::string> parts = {};                   // of those, if the status is kOk
  std::vector<EpochCaller> last = {};                    // callers of the last complete epoch
  std::map<std::uint64_t, EpochConsumed> consumed = {};  // by nonce, of slots that may still exist

  bool concerns(std::uint64_t nonce) const;
  // The caller's slot is not filled any more, although it may still look so.
  void consume(const EpochCaller& caller) { consumed[caller.nonce] = {caller.rank, serial}; }
  std::string encode() const;
  // An empty text means that there is no decision yet.
  static Result<EpochDecision> decode(std::string_view text);
};

using EpochSlots = std::map<int, EpochSlot>;  // by rank
// The keys begin with `prefix`.
Result<EpochSlots> read_slots(const StoreListing& listing, std::string_view prefix);

// The slots and the decision that one caller knows. A value.
struct EpochView {
  EpochDecision decision = {};
  std::string decision_text = {};  // as in the store
  EpochSlots slots = {};

  // The slots without a decision about them. Leaves out those whose callers gave up an all-gather
  // of another size.
  std::vector<const EpochSlot*> fresh(int size) const;
  // Begins the next decision, which does not concern any caller yet. Forgets consumed slots that
  // have been filled again.
  EpochDecision next_decision() const;
};

}  // namespace memspan
