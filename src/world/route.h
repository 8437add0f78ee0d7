// SPDX-License-Identifier: Apache-2.0
// The way to each peer, decided once at join: for memory of the same host a distance to add to a
// local symmetric address, else a link.
//
// Finding a route is the first thing every put, get and atomic does, so it is inline: a compare or
// two for the address, one for the peer, one load, one test. Everything else is out of line,
// including global and static variables.
#pragma once

#include "node/segment.h"
#include "transport/link.h"

namespace memspan::inline world {

struct Route {
  // Peer's address = local symmetric address + delta, whole pages; kNoDelta, an odd number, when
  // only the link reaches it.
  static constexpr std::ptrdiff_t kNoDelta = 1;

  std::ptrdiff_t delta = kNoDelta;
  PeerSlot* slot = nullptr;  // the peer's doorbell; null on another host
  Link* link = nullptr;
  const RemoteRegion* region = nullptr;  // of the link; null when there is no link

  bool is_direct() const { return (delta & kNoDelta) == 0; }
  template <typename T>
  T* address(T* local) const {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(local) +
                                static_cast<std::uintptr_t>(delta));
  }
  // Wakes the peer if it sleeps: notify() after every store of the user's that it may wait for,
  // notify_sync() after one of ours. The fence keeps the compiler from moving the load up; the
  // sleeper's membarrier does the rest.
  void notify() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (slot != nullptr && slot->sleeps_for_data.load(std::memory_order_relaxed) != 0) [[unlikely]]
      NodeSegment::ring(*slot);
  }
  void notify_sync() const {
    if (sleeps()) [[unlikely]]
      NodeSegment::ring(*slot);
  }
  // After a store of ours: whether notify_sync() would wake the peer.
  bool sleeps() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return slot != nullptr && slot->sleeps.load(std::memory_order_relaxed) != 0;
  }
};

// Addresses of this process that every peer has a copy of, and the way to each peer's copy.
struct SymmetricRegion {
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
  const Route* routes = nullptr;  // by PE; a route's region is also this memory

  bool contains(const void* address, std::size_t length) const {
    std::size_t offset = reinterpret_cast<std::uintptr_t>(address) - base;
    return offset < bytes && length <= bytes - offset;
  }
};

// Read by every thread; changed only while the process joins and leaves.
struct RouteTable {
  SymmetricRegion heap;
  SymmetricRegion data;  // global and static variables of the main program
  std::uint32_t peers = 0;
  // Equal to `peers`, or 0: then no call takes its inline path (observe/counters.h).
  std::uint32_t inline_peers = 0;
  OperationContext* operations = nullptr;  // the default context's
  // The symmetric heap in device memory: null before it is made, which may be while other threads
  // read this. Itself null in a job without a device, and in the library's own table.
  const std::atomic<const SymmetricRegion*>* device = nullptr;

  // The route to `peer` when [address, address + length) is symmetric; null when the address or
  // the peer is not valid (end_for_bad_access() then says which).
  const Route* find(const void* address, std::size_t length, int peer) const {
    if (heap.contains(address, length) && static_cast<std::uint32_t>(peer) < peers) [[likely]]
      return &heap.routes[peer];
    return find_elsewhere(address, length, peer);
  }
  // Like find(), for the inline data path: `count` elements, more than 0, in the heap of a mapped
  // peer. Other cases can afford find().
  template <std::size_t kElementBytes>
  const Route* find_mapped(const void* address, std::size_t count, int peer) const {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(address) - heap.base;
    if (offset >= heap.bytes || count - 1 >= (heap.bytes - offset) / kElementBytes) [[unlikely]]
      return nullptr;
    return mapped_route(peer, inline_peers);
  }
  // For one element.
  template <std::size_t kBytes>
  const Route* find_mapped(const void* address, int peer) const {
    return is_in_heap<kBytes>(address) ? mapped_route(peer, inline_peers) : nullptr;
  }
  // Valid only if there are peers: then the heap has more than one element.
  template <std::size_t kBytes>
  bool is_in_heap(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - heap.base <= heap.bytes - kBytes;
  }
  const Route* mapped_route(int peer, std::uint32_t among) const {
    if (static_cast<std::uint32_t>(peer) >= among) [[unlikely]]
      return nullptr;
    const Route* route = &heap.routes[static_cast<std::uint32_t>(peer)];
    return route->is_direct() ? route : nullptr;
  }
  // The result of find_mapped() without inline_peers; `bytes` is more than 0.
  template <std::size_t kBytes>
  const Route* find_mapped_recorded(const void* address, int peer) const {
    return is_in_heap<kBytes>(address) ? mapped_route(peer, peers) : nullptr;
  }
  const Route* find_mapped_recorded(const void* address, std::size_t bytes, int peer) const {
    return heap.contains(address, bytes) ? mapped_route(peer, peers) : nullptr;
  }
  // For addresses outside the heap.
  const Route* find_elsewhere(const void* address, std::size_t length, int peer) const;
  // Whether it is completely in the symmetric heap in device memory, which the host cannot load.
  bool is_on_device(const void* address, std::size_t length) const {
    const SymmetricRegion* const region = device_region();
    return region != nullptr && region->contains(address, length);
  }
  // Null if it does not exist (yet).
  const SymmetricRegion* device_region() const {
    // Pairs with the release of DeviceRoutes::show_heap().
    return device == nullptr ? nullptr : device->load(std::memory_order_acquire);
  }
  // The region of an address that is known to be symmetric.
  const SymmetricRegion& region_of(const void* address) const {
    return heap.contains(address, 0) ? heap : region_elsewhere(address);
  }
  const SymmetricRegion& region_elsewhere(const void* address) const;
  const Route& route_of(const void* address, int peer) const {
    return region_of(address).routes[peer];
  }
  // For links: where the peer's copy of a local symmetric address is.
  RemotePlace place_of(const Route& route, const void* address) const {
    return {*route.region, offset_of(address)};
  }
  // The offset of a local symmetric address in every peer's region.
  std::uint64_t offset_of(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - region_of(address).base;
  }
};

}  // namespace memspan::inline world
