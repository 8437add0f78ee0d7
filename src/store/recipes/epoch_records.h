// SPDX-License-Identifier: Apache-2.0
// What the ad-hoc all-gather writes into the store: a slot for each rank, and the last decision.
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
  std::uint64_t nonce = 0;  // of this call, and of no other
  std::uint64_t lease = 0;
  std::string member;
};

// At a rank's slot. A value.
struct EpochSlot {
  enum class State : std::uint8_t {
    kEmpty = 0,   // its caller is not calling, but still there
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

// How the last epoch ended. No two are the same. A value.
struct EpochDecision {
  std::uint64_t serial = 0;
  Code code = Code::kOk;
  std::string message;
  std::vector<EpochCaller> decided;  // by rank, whom the code concerns
  std::vector<EpochCaller> last;     // who took part in the last epoch that all came to
  std::set<std::uint64_t> consumed;  // nonces in slots whose epoch is over

  bool concerns(std::uint64_t nonce) const;
  std::string encode() const;
  // An empty text is no decision yet.
  static Result<EpochDecision> decode(std::string_view text);
};

// All of it at one moment. A value.
struct EpochView {
  EpochDecision decision;
  std::string decision_text;  // as it stands in the store
  std::map<int, EpochSlot> slots;

  static Result<EpochView> read(const StoreListing& listing, std::string_view prefix);
  // The slots of those who wait for a decision.
  std::map<int, EpochSlot> fresh() const;
  // What a decision after this one begins with; it concerns nobody yet.
  EpochDecision next_decision() const;
};

}  // namespace memspan
