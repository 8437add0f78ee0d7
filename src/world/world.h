// SPDX-License-Identifier: Apache-2.0
// This process's membership in a job: who it is, how it reaches every peer, how it waits.
//
// A World exists only complete: join() returns when every route is known. It owns everything that
// the job needs on this side; destroying it leaves the job (properly when leave() was called).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/status.h"
#include "memory/allocator.h"
#include "memory/symmetric_heap.h"
#include "transport/transport.h"
#include "world/board.h"
#include "world/membership.h"
#include "world/route.h"
#include "world/wait.h"

namespace memspan {

// Members order is destruction order: links before transport before mappings before descriptors.
class World {
 public:
  // Maps the heap (`heap_bytes` > 0, the same in every process) and connects to every peer of
  // `membership`. Touches no heap memory.
  static Result<std::unique_ptr<World>> create(Membership membership, std::size_t heap_bytes);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return membership_.rank; }
  int size() const { return membership_.size; }
  const Board& board() const { return *membership_.board; }
  Membership& membership() { return membership_; }
  const RouteTable& routes() const { return table_; }
  const Route& route(int peer) const { return routes_[static_cast<std::size_t>(peer)]; }
  WaitPlace& waiting() { return waiting_; }
  SymmetricHeap& heap() { return *heap_; }
  std::string_view transport_name() const { return transport_->name(); }

  // The library's own area in the segment of `peer` (same host): kInternalBytes bytes.
  std::byte* internal_area(int peer) const;
  // Hands out this process's internal area.
  Allocator& internal_allocator() { return internal_allocator_; }

  // Notes that this process leaves on purpose. The caller has made sure (by a barrier) that no
  // peer uses its memory any more.
  void leave();

 private:
  World(Membership membership, std::size_t heap_bytes);
  Status map_segments();
  Status connect_peers();
  void fill_table();

  Membership membership_;
  std::size_t heap_bytes_;
  std::size_t part_bytes_;  // internal area + heap: what one rank has in the address range
  std::unique_ptr<Reservation> range_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Route> routes_;
  RouteTable table_;
  std::unique_ptr<SymmetricHeap> heap_;
  Allocator internal_allocator_;
  WaitPlace waiting_;
};

}  // namespace memspan
