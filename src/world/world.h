// SPDX-License-Identifier: Apache-2.0
// This process's membership in a job: who it is, how it reaches every peer, how it waits.
//
// A World exists only complete: join() returns when every route is known. It owns everything that
// the job needs on this side; destroying it leaves the job (properly when leave() was called).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "memory/address_plan.h"
#include "memory/allocator.h"
#include "memory/program_data.h"
#include "memory/symmetric_heap.h"
#include "transport/transport.h"
#include "world/board.h"
#include "world/membership.h"
#include "world/route.h"
#include "world/wait.h"

namespace memspan {

// Whether the variables of the main program are symmetric in a World: in one of a process.
enum class ProgramVariables { kShared, kOwn };

// Members order is destruction order: links before transport before mappings before descriptors.
class World {
 public:
  // Maps the heap (`heap_bytes` > 0, the same in every process) and connects to every peer of
  // `membership`. Touches no heap memory.
  static Result<std::unique_ptr<World>> create(
      Membership membership, std::size_t heap_bytes,
      ProgramVariables variables = ProgramVariables::kShared);
  // Maps the variables of all peers that run the same program. To be called once all have made
  // their World; before it, and for other programs' peers, they are not symmetric.
  Status connect_program_data();
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
  CommitMode commit_mode() const { return commit_mode_; }
  std::string_view transport_name() const { return transport_->name(); }

  // `peer`'s heap as this process sees it (same host).
  std::byte* heap_of(int peer) const { return internal_area(peer) + kInternalBytes; }
  // The library's own area in the segment of `peer` (same host): kInternalBytes bytes.
  std::byte* internal_area(int peer) const;
  // The pages of that memory in a heap, whoever's, stay when this ends (Reservation::keep).
  // kInvalidArgument when it is in none.
  Status keep_pages(const void* address, std::size_t bytes);
  // A piece of this process's internal area, at whole pairs of cache lines; nullopt when there is
  // no room. Thread-safe.
  std::optional<std::uint64_t> allocate_internal(std::uint64_t bytes);
  void free_internal(std::uint64_t offset);
  std::uint64_t internal_bytes_in_use();

  // Collective: says that this process makes no call of the job any more, and returns when all
  // others have come as far. No barrier is taken for it: a peer in another collective learns that
  // this one will not come, and kUnavailable here says that one waited. kTimeout names who did not
  // come. The caller has completed its puts.
  Status end(const char* what, EndKind how);
  // Notes that this process leaves on purpose. The caller has made sure (by end()) that no peer
  // uses its memory any more.
  void leave();

 private:
  World(Membership membership, std::size_t heap_bytes, CommitMode mode);
  Status map_segments(ProgramVariables variables);
  Status connect_peers();
  void fill_table();
  Status connect_program_data(int peer);
  Status explain_end(const Status& status) const;

  Membership membership_;
  std::size_t heap_bytes_;
  CommitMode commit_mode_;
  std::size_t part_bytes_;  // internal area + heap: what one rank has in the address range
  ProgramData program_data_;
  std::unique_ptr<Reservation> range_;  // all parts, then all program data
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Route> routes_;
  std::vector<std::unique_ptr<Link>> data_links_;
  std::vector<Route> data_routes_;
  RouteTable table_;
  std::unique_ptr<SymmetricHeap> heap_;
  Mutex internal_mutex_;
  Allocator internal_allocator_ MEMSPAN_GUARDED_BY(internal_mutex_);
  WaitPlace waiting_;
};

}  // namespace memspan
