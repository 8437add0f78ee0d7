// SPDX-License-Identifier: Apache-2.0
#include "fabric/member.h"

#include "transport/host_identity.h"

namespace memspan {

Result<std::shared_ptr<Member>> Member::join(const StoreAccess& access, Deadline deadline) {
  MEMSPAN_TRY_ASSIGN(auto door, Door::open(), "joining a store");
  auto store = StoreClient::connect(access, deadline);
  if (!store.is_ok()) return store.status();
  return std::shared_ptr<Member>(
      new Member(std::move(door), std::move(store).value(), host_identity()));
}

}  // namespace memspan
