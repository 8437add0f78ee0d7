// SPDX-License-Identifier: Apache-2.0
// The way to each peer, decided once at join: for memory of the same host a distance to add to a
// local symmetric address, else a link.
//
// Finding a route is the first thing every put, get and atomic does, so it is in line: two
// compares for the address, one for the peer, one load. Everything else is out of line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "transport/link.h"
#include "world/board.h"

namespace memspan {

struct Route {
  // Peer's address = local symmetric address + delta; kNoDelta when only the link reaches it.
  static constexpr std::ptrdiff_t kNoDelta = std::numeric_limits<std::ptrdiff_t>::min();

  std::ptrdiff_t delta = kNoDelta;
  BoardPeer* board = nullptr;  // the peer's doorbell; null on another host
  Link* link = nullptr;

  bool is_direct() const { return delta != kNoDelta; }
  template <typename T>
  T* address(T* local) const {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(local) +
                                static_cast<std::uintptr_t>(delta));
  }
  // Wakes the peer if it sleeps: notify() after every store of the user's that it may wait for,
  // notify_meeting() after one of ours. The fence keeps the compiler from moving the load up; the
  // sleeper's membarrier does the rest.
  void notify() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (board != nullptr && board->armed_for_data.load(std::memory_order_relaxed) != 0) [[unlikely]]
      Board::ring(*board);
  }
  void notify_meeting() const {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (board != nullptr && board->armed.load(std::memory_order_relaxed) != 0) [[unlikely]]
      Board::ring(*board);
  }
};

// Read by every thread; changed only while the process joins and leaves.
struct RouteTable {
  std::uintptr_t base = 0;  // of the local symmetric heap
  std::size_t bytes = 0;
  std::uint32_t peers = 0;
  const Route* routes = nullptr;
  std::size_t link_offset = 0;  // of `base` inside a link's segment

  // The route to `peer` when [address, address + length) is symmetric; null when the address or
  // the peer is not valid (find_problem() then says which).
  const Route* find(const void* address, std::size_t length, int peer) const {
    std::size_t offset = reinterpret_cast<std::uintptr_t>(address) - base;
    if (offset >= bytes || length > bytes - offset || static_cast<std::uint32_t>(peer) >= peers)
        [[unlikely]]
      return nullptr;
    return &routes[peer];
  }
  // For links: the offset of a local symmetric address in every peer's segment.
  std::uint64_t offset_of(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - base + link_offset;
  }
};

}  // namespace memspan
