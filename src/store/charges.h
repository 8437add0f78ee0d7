// SPDX-License-Identifier: Apache-2.0
// What the store remembers for the sake of sessions, in bytes as they are in memory: waits,
// watches, ranks and places with the nodes of their maps. One session has a bound, and all together
// have one.
//
// A charge outlives its session when what was charged does: a part that a member brought to a group
// stays until the group's operation is over.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "store/quota.h"
#include "store/wire.h"

namespace memspan {

// One thread at a time.
class StoreCharges {
 public:
  explicit StoreCharges(StoreQuota quota) : of_one_(quota.session), of_all_(quota.sessions) {}

  // Why the session may not have `bytes` more, nullopt when it may.
  std::optional<std::string> over(SessionId session, std::size_t bytes) const;
  // Also beyond the bounds: for what follows from something that was allowed.
  void add(SessionId session, std::size_t bytes);
  // What was added before.
  void remove(SessionId session, std::size_t bytes);
  std::size_t all() const { return all_; }

 private:
  const std::size_t of_one_;
  const std::size_t of_all_;
  std::size_t all_ = 0;
  std::map<SessionId, std::size_t> by_session_;
};

}  // namespace memspan
