// SPDX-License-Identifier: Apache-2.0
#include "pgas/rma.h"

namespace memspan::inline pgas {

Status put_by_link(const RouteTable& table, const Route& route, void* dest, const void* source,
                   std::size_t bytes) {
  if (bytes == 0) return Status::ok();
  MEMSPAN_TRY(route.link->put(*table.operations, table.place_of(route, dest), source, bytes),
              "put");
  route.notify();
  return Status::ok();
}

Status get_by_link(const RouteTable& table, const Route& route, void* dest, const void* source,
                   std::size_t bytes) {
  if (bytes == 0) return Status::ok();
  return route.link->get(*table.operations, dest, table.place_of(route, source), bytes);
}

Status move_strided(MoveDirection direction, const RouteTable& table, const Route& route,
                    void* dest, const void* source, const Strides& strides,
                    std::size_t element_bytes) {
  constexpr std::size_t kMostPieces = 1024;
  const bool is_put = direction == MoveDirection::kPut;
  const bool is_direct = route.is_direct();
  if (is_direct && is_put) dest = route.address(static_cast<std::byte*>(dest));
  if (is_direct && !is_put) source = route.address(static_cast<const std::byte*>(source));
  const std::size_t bytes = strides.block * element_bytes;
  const auto element = static_cast<std::ptrdiff_t>(element_bytes);
  const auto count = static_cast<std::ptrdiff_t>(strides.count);
  std::vector<MovePiece> pieces;  // for the link
  for (std::ptrdiff_t block = 0; block < count; ++block) {
    std::byte* const to = at(dest, block * strides.dest * element);
    const std::byte* const from = at(source, block * strides.source * element);
    if (is_direct) {
      copy_bytes(to, from, bytes);
      continue;
    }
    // Only read by a put.
    pieces.push_back({is_put ? const_cast<std::byte*>(from) : to, route.region,
                      table.offset_of(is_put ? to : from), bytes});
    if (pieces.size() < kMostPieces && block + 1 < count) continue;
    MEMSPAN_PASS(route.link->move(*table.operations, direction, pieces));
    pieces.clear();
  }
  if (is_direct && is_put) route.notify();
  if (is_direct && !is_put) complete_get();
  return Status::ok();
}

Status quiet_links(const RouteTable& table) {
  return table.operations == nullptr ? Status::ok() : table.operations->quiet().annotate("quiet");
}

bool has_links(const RouteTable& table) {
  // A peer that is reached by a link is so for all regions.
  for (std::uint32_t peer = 0; peer < table.peers; ++peer)
    if (!table.heap.routes[peer].is_direct()) return true;
  return false;
}

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

Status signal(const RouteTable& table, const Route& route, std::uint64_t* signal,
              std::uint64_t value, SignalOp op) {
  if (!route.is_direct()) std::atomic_thread_fence(std::memory_order_release);
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

}  // namespace memspan::inline pgas
