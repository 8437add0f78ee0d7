// SPDX-License-Identifier: Apache-2.0
// This process's memberships, one for each store: Big Memory, Share Memory and Trans at the same
// address share theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/clock.h"
#include "core/status.h"
#include "fabric/member.h"
#include "store/security.h"

namespace memspan::capi {

enum class Hosting {
  kNever,
  kWhenPossible,  // unless somebody has the address already, or it is not this host's
};

// Connects, or shares what is connected, after hosting the store. `security` empty: as the program
// chose (store_security.h). kInvalidArgument for the URL; else as StoreClient::connect(). A lost
// connection is not shared any more, nor is a parent's by a child of fork(). Thread-safe.
Result<std::shared_ptr<Member>> member_at(const char* url, Hosting hosting,
                                          std::optional<StoreSecurity> security, Deadline deadline);

// The rank of this process among those who share a scope ("bm") at a store. One thread at a time.
class RankInScope {
 public:
  // The rank that is asked for, or the lowest free one when that is -1. The rank of an earlier
  // membership lasts as long as the connection: kUnavailable when another one is asked for then, or
  // when somebody has it; kInvalidArgument when others say another number of ranks.
  Result<std::uint32_t> take(const char* scope, const std::shared_ptr<Member>& member, int rank,
                             std::uint32_t ranks, Deadline deadline);

 private:
  std::weak_ptr<Member> member_;  // where it has the rank
  std::uint32_t rank_ = 0;
  std::uint32_t ranks_ = 0;
};

}  // namespace memspan::capi
