// SPDX-License-Identifier: Apache-2.0
#include "pgas/signal.h"

#include "pgas/atomic.h"

namespace memspan::pgas {

Status signal(const RouteTable& table, const Route& route, std::uint64_t* signal,
              std::uint64_t value, SignalOp op) {
  if (!route.is_direct()) MEMSPAN_TRY(route.link->fence(*table.operations), "signal");
  if (op == SignalOp::kSet)
    return atomic<AtomicKind::kSet, std::uint64_t>(table, route, signal, value, 0, nullptr);
  return atomic<AtomicKind::kAdd, std::uint64_t>(table, route, signal, value, 0, nullptr);
}

Status put_signal_by_link(const RouteTable& table, const PutSignalRoutes& routes, void* dest,
                          const void* source, std::size_t bytes, std::uint64_t* word,
                          std::uint64_t value, SignalOp op) {
  const RemotePlace word_at = table.place_of(routes.signal, word);
  const RemotePlace data_at = bytes != 0 ? table.place_of(routes.data, dest) : word_at;
  MEMSPAN_TRY(
      routes.signal.link->put_signal(*table.operations, data_at, source, bytes, word_at, value, op),
      "put_signal");
  routes.signal.notify();
  return Status::ok();
}

}  // namespace memspan::pgas
