// SPDX-License-Identifier: Apache-2.0
// This process's memberships, two for each store: Big Memory and Share Memory at the same address
// share one, which ends with its connection, and all endpoints the other, which connects again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/status.h"
#include "fabric/member.h"
#include "net/security.h"

namespace memspan::capi {

enum class Hosting {
  kNever,
  kWhenPossible,  // unless the address is taken, or is another host's
};

// The effect of a lost store on the membership.
enum class AfterLoss {
  kEnds,        // it is not shared any more
  kReconnects,  // Member::join_for_good(); it also hosts the store again when it may
};

// Connects, or shares what is connected, after hosting the store. `security` empty: as the program
// chose (store_security.h). kInvalidArgument for the URL; else as connect_store(). A child of
// fork() does not share its parent's. Thread-safe.
Result<std::shared_ptr<Member>> member_at(const char* url, Hosting hosting, AfterLoss after_loss,
                                          std::optional<StoreSecurity> security, Deadline deadline);

// The rank of this process in a scope ("bm") of a store. Given up at its end. Move-only.
class ClaimedRank {
 public:
  // Takes the given rank, or the lowest free one for -1. kUnavailable when another member has it,
  // kInvalidArgument when members give different numbers of ranks.
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
