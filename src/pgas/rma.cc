// SPDX-License-Identifier: Apache-2.0
#include "pgas/rma.h"

namespace memspan::pgas {
namespace {

// Calls move(dest, source, bytes) for every block.
template <typename Move>
Status for_each_block(void* dest, const void* source, const Strides& strides,
                      std::size_t element_bytes, Move move) {
  const std::size_t block_bytes = strides.block * element_bytes;
  const auto element = static_cast<std::ptrdiff_t>(element_bytes);
  for (std::size_t i = 0; i < strides.count; ++i) {
    auto block = static_cast<std::ptrdiff_t>(i);
    MEMSPAN_TRY(move(at(dest, block * strides.dest * element),
                     at(source, block * strides.source * element), block_bytes),
                "a strided transfer");
  }
  return Status::ok();
}

// All blocks by vectors of pieces.
Status move_strided(MoveDirection direction, const RouteTable& table, const Route& route,
                    void* dest, const void* source, const Strides& strides,
                    std::size_t element_bytes) {
  constexpr std::size_t kMostPieces = 1024;
  std::vector<MovePiece> pieces;
  const auto flush = [&] {
    Status status = route.link->move(*table.operations, direction, pieces);
    pieces.clear();
    return status;
  };
  MEMSPAN_PASS(for_each_block(dest, source, strides, element_bytes,
                              [&](std::byte* to, const std::byte* from, std::size_t bytes) {
                                const bool is_put = direction == MoveDirection::kPut;
                                // Only read by a put.
                                pieces.push_back({is_put ? const_cast<std::byte*>(from) : to,
                                                  route.region, table.offset_of(is_put ? to : from),
                                                  bytes});
                                return pieces.size() < kMostPieces ? Status::ok() : flush();
                              }));
  return pieces.empty() ? Status::ok() : flush();
}

}  // namespace

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

Status put_strided(const RouteTable& table, const Route& route, void* dest, const void* source,
                   const Strides& strides, std::size_t element_bytes) {
  if (!route.is_direct())
    return move_strided(MoveDirection::kPut, table, route, dest, source, strides, element_bytes);
  Status status =
      for_each_block(route.address(static_cast<std::byte*>(dest)), source, strides, element_bytes,
                     [](std::byte* to, const std::byte* from, std::size_t bytes) {
                       copy_bytes(to, from, bytes);
                       return Status::ok();
                     });
  route.notify();
  return status;
}

Status get_strided(const RouteTable& table, const Route& route, void* dest, const void* source,
                   const Strides& strides, std::size_t element_bytes) {
  if (!route.is_direct())
    return move_strided(MoveDirection::kGet, table, route, dest, source, strides, element_bytes);
  Status status =
      for_each_block(dest, route.address(static_cast<const std::byte*>(source)), strides,
                     element_bytes, [](std::byte* to, const std::byte* from, std::size_t bytes) {
                       copy_bytes(to, from, bytes);
                       return Status::ok();
                     });
  complete_get();
  return status;
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

}  // namespace memspan::pgas
