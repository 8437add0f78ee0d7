// SPDX-License-Identifier: Apache-2.0
// This process's memberships, one for each store: Big Memory, Share Memory and Trans at the same
// address share theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

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
// chose (store_security.h). kInvalidArgument for the URL; else as connect_store(). A lost
// connection is not shared any more, nor is a parent's by a child of fork(). Thread-safe.
Result<std::shared_ptr<Member>> member_at(const char* url, Hosting hosting,
                                          std::optional<StoreSecurity> security, Deadline deadline);

// The rank of this process in a scope ("bm") of a store. Given up at its end. Move-only.
class ClaimedRank {
 public:
  // The rank that is asked for, or the lowest free one when that is -1. kUnavailable when somebody
  // has it, kInvalidArgument when others say another number of ranks.
  static Result<ClaimedRank> take(std::shared_ptr<Member> member, const char* scope, int rank,
                                  std::uint32_t ranks, Deadline deadline);
  ClaimedRank(ClaimedRank&&) noexcept = default;
  ClaimedRank& operator=(ClaimedRank&&) = delete;
  ~ClaimedRank();

  std::uint32_t number() const { return number_; }

 private:
  ClaimedRank(std::shared_ptr<Member> member, const char* scope, std::uint32_t number)
      : member_(std::move(member)), scope_(scope), number_(number) {}
  std::shared_ptr<Member> member_;  // shared with what uses the rank; null when moved from
  const char* scope_;
  std::uint32_t number_;
};

}  // namespace memspan::capi
