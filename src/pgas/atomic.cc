// SPDX-License-Identifier: Apache-2.0
#include "pgas/atomic.h"

namespace memspan::pgas {

Status atomic_by_link(const RouteTable& table, const Route& route, const AtomicOp& op,
                      const void* word, std::uint64_t* fetched) {
  MEMSPAN_TRY(route.link->atomic(op, table.offset_of(word), fetched), "atomic");
  if (op.kind != AtomicKind::kFetch) route.notify();
  return Status::ok();
}

}  // namespace memspan::pgas
