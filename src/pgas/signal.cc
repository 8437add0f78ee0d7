// SPDX-License-Identifier: Apache-2.0
#include "pgas/signal.h"

#include "pgas/atomic.h"

namespace memspan::pgas {

Status signal(const RouteTable& table, const Route& route, std::uint64_t* signal,
              std::uint64_t value, SignalOp op) {
  if (!route.is_direct()) MEMSPAN_TRY(route.link->fence(), "signal");
  if (op == SignalOp::kSet)
    return atomic<AtomicKind::kSet, std::uint64_t>(table, route, signal, value, 0, nullptr);
  return atomic<AtomicKind::kAdd, std::uint64_t>(table, route, signal, value, 0, nullptr);
}

}  // namespace memspan::pgas
