// SPDX-License-Identifier: Apache-2.0
// Put and get, for anything that has a Route. Blocking puts return when the source may be changed.
// On mapped memory they are then also delivered, so the non-blocking forms are the same.
//
// The caller has found the route and checked the addresses (RouteTable::find).
#pragma once

#include <atomic>
#include <cstddef>

#include "core/status.h"
#include "device/host/copy.h"
#include "world/route.h"

namespace memspan::pgas {

// Through the link, for peers that plain stores do not reach. Out of line: never the fast case.
Status put_by_link(const RouteTable& table, const Route& route, void* dest, const void* source,
                   std::size_t bytes);
Status get_by_link(const RouteTable& table, const Route& route, void* dest, const void* source,
                   std::size_t bytes);

// `dest` is a local symmetric address, `source` any local one.
inline Status put(const RouteTable& table, const Route& route, void* dest, const void* source,
                  std::size_t bytes) {
  if (!route.is_direct()) [[unlikely]]
    return put_by_link(table, route, dest, source, bytes);
  copy_bytes(route.address(static_cast<std::byte*>(dest)), source, bytes);
  route.notify();
  return Status::ok();
}

// A get is complete when it returns: what this thread reads or gets next is not older. Pairs with
// the fence or the release store between the peer's puts. No instruction where loads stay in order.
inline void complete_get() {
  std::atomic_thread_fence(std::memory_order_acquire);
}

// `source` is a local symmetric address, `dest` any local one.
inline Status get(const RouteTable& table, const Route& route, void* dest, const void* source,
                  std::size_t bytes) {
  if (!route.is_direct()) [[unlikely]]
    return get_by_link(table, route, dest, source, bytes);
  copy_bytes(dest, route.address(static_cast<const std::byte*>(source)), bytes);
  complete_get();
  return Status::ok();
}

// Strided forms: element i moves from source[i * source_stride] to dest[i * dest_stride], in blocks
// of `block` elements (1 for iput/iget) whose starts the strides separate.
struct Strides {
  std::ptrdiff_t dest;
  std::ptrdiff_t source;
  std::size_t block;
  std::size_t count;  // of blocks
};
Status put_strided(const RouteTable& table, const Route& route, void* dest, const void* source,
                   const Strides& strides, std::size_t element_bytes);
Status get_strided(const RouteTable& table, const Route& route, void* dest, const void* source,
                   const Strides& strides, std::size_t element_bytes);

}  // namespace memspan::pgas
