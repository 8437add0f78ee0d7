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

Status put_signal_by_link(const RouteTable& table, const PutSignalRoutes& routes, void* dest,
                          const void* source, std::size_t bytes, std::uint64_t* word,
                          std::uint64_t value, SignalOp op) {
  MEMSPAN_PASS(put_by_link(table, routes.data, dest, source, bytes));
  // A fence of the signal's own link says nothing of another link's data.
  if (routes.data.link != routes.signal.link) MEMSPAN_TRY(routes.data.link->quiet(), "signal");
  return signal(table, routes.signal, word, value, op);
}

}  // namespace memspan::pgas
