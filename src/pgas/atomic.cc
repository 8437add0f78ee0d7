// SPDX-License-Identifier: Apache-2.0
#include "pgas/atomic.h"

namespace memspan::pgas {

Status atomic_at(const RouteTable& table, const Route& route, const AtomicOp& op, const void* word,
                 std::uint64_t* fetched) {
  if (route.is_direct()) {
    auto* target = route.address(static_cast<std::byte*>(const_cast<void*>(word)));
    MEMSPAN_TRY(checked_atomic(target, op, fetched), "atomic");
  } else {
    MEMSPAN_TRY(route.link->atomic(*table.operations, op, table.place_of(route, word), fetched),
                "atomic");
  }
  if (op.kind != AtomicKind::kFetch) route.notify();
  return Status::ok();
}

}  // namespace memspan::pgas
