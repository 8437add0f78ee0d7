// SPDX-License-Identifier: Apache-2.0
// How much of one quantity each session holds: of the memory for waits, watches and ranks, with the
// nodes of their maps; of the keys; of their bytes.
//
// A charge outlives its session if the charged thing does: a key without a lease.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "store/quota.h"
#include "store/wire.h"

namespace memspan {

// A charge that another one replaces. A value.
struct FormerCharge {
  SessionId session = 0;
  std::size_t amount = 0;
};

// One thread at a time.
class StoreCharges {
 public:
  explicit StoreCharges(StoreShare share) : share_(share) {}

  // The reason why the session may not hold so much more, nullopt if it may.
  std::optional<std::string> over(SessionId session, std::size_t more,
                                  FormerCharge former = {}) const;
  // Also beyond the limits, for the consequences of an allowed request.
  void add(SessionId session, std::size_t amount);
  // `amount` must have been added.
  void remove(SessionId session, std::size_t amount);
  std::size_t all() const { return all_; }

 private:
  const StoreShare share_;
  std::size_t all_ = 0;
  std::map<SessionId, std::size_t> by_session_;
};

}  // namespace memspan
