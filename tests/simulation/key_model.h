// SPDX-License-Identifier: Apache-2.0
// What one key of a store is allowed to do, written as simply as possible: the yardstick for the
// real one.
#pragma once

#include <optional>
#include <string>

#include "store/wire.h"

namespace memspan::simulation {

// A value.
struct KeyState {
  std::optional<std::string> value;  // nullopt: there is no such key
  SessionId owner = 0;               // 0: nobody
  bool operator==(const KeyState&) const = default;
};

// One operation on one key, as the client that did it saw it. A value.
//
// `begin` and `end` number the events of a run: whatever it did was done between the two.
struct Operation {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  SessionId session = 0;
  bool is_end_of_session = false;  // then the rest has no meaning: the session's keys go
  StoreRequest request = {};
  // nullopt: nobody saw one, so that it may have happened or not. Of a wait for several keys:
  // kOk when this key was there, kTimeout when it was not.
  std::optional<StoreAnswer> answer = {};
};

struct Step {
  KeyState after;
  bool has_changed = false;  // watches are told, even if the new value is the old one
};

// What the operation does to a key in that state; nullopt when its answer contradicts the state.
std::optional<Step> take_step(const KeyState& before, const Operation& operation);

// For a person to read.
std::string describe(const Operation& operation);

}  // namespace memspan::simulation
