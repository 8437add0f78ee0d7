// SPDX-License-Identifier: Apache-2.0
// Signals: 64-bit symmetric words that say that data has arrived.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "pgas/rma.h"
#include "transport/link.h"
#include "world/route.h"

namespace memspan::pgas {

// Updates the peer's copy of `signal` after everything this thread put to that peer before.
Status signal(const RouteTable& table, const Route& route, std::uint64_t* signal,
              std::uint64_t value, SignalOp op);

// The routes of put_signal(): the two may be in different regions, so each has a route to the peer.
struct PutSignalRoutes {
  const Route& data;
  const Route& signal;
};
// For peers that plain stores do not reach.
Status put_signal_by_link(const RouteTable& table, const PutSignalRoutes& routes, void* dest,
                          const void* source, std::size_t bytes, std::uint64_t* word,
                          std::uint64_t value, SignalOp op);

// The data, then the signal: a PE that sees the signal sees the data. No bytes: only the signal.
inline Status put_signal(const RouteTable& table, const PutSignalRoutes& routes, void* dest,
                         const void* source, std::size_t bytes, std::uint64_t* word,
                         std::uint64_t value, SignalOp op) {
  if (!routes.signal.is_direct()) [[unlikely]]
    return put_signal_by_link(table, routes, dest, source, bytes, word, value, op);
  copy_bytes(routes.data.address(static_cast<std::byte*>(dest)), source, bytes);
  if (op == SignalOp::kSet)
    __atomic_store_n(routes.signal.address(word), value, __ATOMIC_RELEASE);
  else
    __atomic_fetch_add(routes.signal.address(word), value, __ATOMIC_RELEASE);
  routes.signal.notify();
  return Status::ok();
}

}  // namespace memspan::pgas
