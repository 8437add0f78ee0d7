// SPDX-License-Identifier: Apache-2.0
// Memory that the store uses on behalf of sessions, in bytes: waits, watches, ranks and places,
// with the nodes of their maps. One session has a limit, and all together have one.
//
// A charge outlives its session if the charged thing does. A member's contribution to a group stays
// until the group's operation is over.
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

  // The reason why the session may not use `bytes` more, nullopt if it may.
  std::optional<std::string> over(SessionId session, std::size_t bytes) const;
  // Also beyond the limits, for the consequences of an allowed request.
  void add(SessionId session, std::size_t bytes);
  // `bytes` must have been added.
  void remove(SessionId session, std::size_t bytes);
  std::size_t all() const { return all_; }

 private:
  const std::size_t of_one_;
  const std::size_t of_all_;
  std::size_t all_ = 0;
  std::map<SessionId, std::size_t> by_session_;
};

}  // namespace memspan
