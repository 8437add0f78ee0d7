// SPDX-License-Identifier: Apache-2.0
// This process's memberships, one for each store: Big Memory, Share Memory and Trans at the same
// address share theirs.
#pragma once

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

}  // namespace memspan::capi
