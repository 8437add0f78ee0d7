// SPDX-License-Identifier: Apache-2.0
#include "pgas/rma.h"

#include <vector>

namespace memspan::pgas {
namespace {

std::byte* advance(void* base, std::ptrdiff_t elements, std::size_t element_bytes) {
  return static_cast<std::byte*>(base) + elements * static_cast<std::ptrdiff_t>(element_bytes);
}

const std::byte* advance(const void* base, std::ptrdiff_t elements, std::size_t element_bytes) {
  return static_cast<const std::byte*>(base) +
         elements * static_cast<std::ptrdiff_t>(element_bytes);
}

// Calls move(dest, source, bytes) for every block.
template <typename Move>
Status for_each_block(void* dest, const void* source, const Strides& strides,
                      std::size_t element_bytes, Move move) {
  std::size_t block_bytes = strides.block * element_bytes;
  for (std::size_t i = 0; i < strides.count; ++i) {
    auto block = static_cast<std::ptrdiff_t>(i);
    MEMSPAN_TRY(move(advance(dest, block * strides.dest, element_bytes),
                     advance(source, block * strides.source, element_bytes), block_bytes),
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

}  // namespace memspan::pgas
