// SPDX-License-Identifier: Apache-2.0
// The ad-hoc all-gather's records in the store: a slot for each rank, and the last decision.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "store/key_value_store.h"

namespace memspan {

// One call of one member. A value.
struct EpochCaller {
  int rank = 0;
  std::uint64_t nonce = 0;  // unique to this call
  std::uint64_t lease = 0;
  std::string member;
};

// The content of a rank's slot. A value.
struct EpochSlot {
  enum class State : std::uint8_t {
    kEmpty = 0,   // its caller exists, but is not calling
    kFilled = 1,  // its caller waits, or the decision about it has just been written
  };
  State state = State::kEmpty;
  EpochCaller caller;
  std::uint32_t size = 0;    // of the epoch, as the caller says
  std::uint64_t length = 0;  // of what the caller contributes
  std::string bytes;         // all of it, or nothing when that is more than its share

  std::string encode() const;
  static Result<EpochSlot> decode(std::string_view text);
};

// Outcome of the last epoch. Each one is unique. A value.
struct EpochDecision {
  std::uint64_t serial = 0;
  Code code = Code::kOk;
  std::string message;
  std::vector<EpochCaller> decided;  // by rank, those that the code concerns
  std::vector<EpochCaller> last;     // callers of the last complete epoch
  std::set<std::uint64_t> consumed;  // nonces in slots whose epoch is over

  bool concerns(std::uint64_t nonce) const;
  std::string encode() const;
  // An empty text means that there is no decision yet.
  static Result<EpochDecision> decode(std::string_view text);
};

// All records at one moment. A value.
struct EpochView {
  EpochDecision decision;
  std::string decision_text;  // as in the store
  std::map<int, EpochSlot> slots;

  static Result<EpochView> read(const StoreListing& listing, std::string_view prefix);
  // The slots of callers that wait for a decision.
  std::map<int, EpochSlot> fresh() const;
  // Begins the next decision, which does not concern any caller yet.
  EpochDecision next_decision() const;
};

}  // namespace memspan
