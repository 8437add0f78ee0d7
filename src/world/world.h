// SPDX-License-Identifier: Apache-2.0
// This process's membership in a job: its rank, how it reaches every peer, how it waits.
//
// A World exists only complete: create() returns when every route is known. It owns everything that
// the job needs on this side. Destroying it leaves the job, properly only after leave().
#pragma once

#include "memory/address_plan.h"
#include "transport/registry.h"
#include "world/device_heap.h"
#include "world/host_memory.h"

namespace memspan::inline world {

// Whether a World shares the main program's variables; one World of a process can.
enum class StaticVariables { kShared, kOwn };

// Member order is destruction order: links before transport before mappings before descriptors.
class World : NotCopyable {
 public:
  // Maps the heap (`heap_bytes` > 0, the same in every process) and connects to every peer of
  // `membership`. Touches no heap memory.
  static Result<std::unique_ptr<World>> create(
      Membership membership, HeapSize heap, StaticVariables variables = StaticVariables::kShared);
  // Maps the variables of all peers that run the same program. Call it once all have made their
  // World. Before it, and for other programs' peers, they are not symmetric.
  Status connect_static_segments();
  ~World();

  int rank() const { return membership_.rank; }
  int size() const { return membership_.size; }
  const NodeMap& nodes() const { return membership_.nodes; }
  // Whether this process and `peer` share memory: only then there is an internal_area() of it.
  bool is_near(int peer) const { return nodes().share_node(peer, rank()); }
  // To and from PEs of other nodes.
  Messages& messages() { return messages_; }
  // This node's segment, with a slot for every PE of the job. Notices of ends and deaths update the
  // slots of other nodes' PEs.
  const NodeSegment& segment() const { return *membership_.segment; }
  // More processes on this node than cores that any of them may use.
  bool is_oversubscribed() const { return segment().is_oversubscribed(); }
  Membership& membership() { return membership_; }
  // For the library's own memory and all other host memory.
  const RouteTable& routes() const { return table_; }
  // For memory that the program names: routes(), unless it may be memory of a device.
  const RouteTable& program_routes() const {
    return device_routes_ == nullptr ? table_ : device_routes_->table();
  }
  const Route& route(int peer) const { return routes_[peer]; }
  WaitContext& waiting() { return waiting_; }
  SymmetricHeap& heap() { return *heap_; }
  // Publishes the current use of the heap to tools that watch.
  void tell_heap_use() const { listed_.set_memory(heap_bytes_, heap_->allocator().bytes_in_use()); }
  // Whether MEMSPAN_DEVICE allows memory of another device in this job.
  bool wants_device() const { return device_routes_ != nullptr; }
  // The heap in memory of the device; null before it is made.
  DeviceHeap* device_heap() { return device_heap_.get(); }
  // Collective, like DeviceHeap::make(). If the heap exists or no device is wanted, it is an
  // internal error.
  Status make_device_heap(const Exchange& exchange);
  CommitMode commit_mode() const { return commit_mode_; }
  // Takes the memory that the PEs of this node were promised; they still have to call
  // forget_promised() of their heaps.
  Status take_promised() const;
  // The default context's outstanding operations on links.
  OperationContext& operations() { return operations_; }
  // How this process reaches `peer`: "own", "mapped" or "message", and why so.
  const TransportChoice& transport_to(int peer) const;
  // Describes the routes to all PEs in one line.
  std::string describe_routes() const;
  // Null if all PEs are mapped.
  const LinkedPeers* linked() const { return linked_.get(); }

  // The heap of a PE of this node as this process sees it.
  std::byte* heap_of(int peer) const { return internal_area(peer) + kInternalBytes; }
  // The library's own area in the segment of a PE of this node: kInternalBytes bytes. A PE of
  // another node is an internal error and aborts: check is_near() first.
  std::byte* internal_area(int peer) const;
  // Keeps the pages of that memory, in a heap of this node, after this ends (Reservation::keep).
  // kInvalidArgument if it is in no such heap.
  Status keep_pages(const void* address, std::size_t bytes);
  // A piece of this process's internal area, at whole pairs of cache lines; nullopt if the area is
  // full. Thread-safe.
  std::optional<std::uint64_t> allocate_internal(std::uint64_t bytes) {
    MutexLock lock(internal_mutex_);
    return internal_allocator_.allocate(bytes, kFalseSharingRange);
  }
  void free_internal(std::uint64_t offset) {
    MutexLock lock(internal_mutex_);
    internal_allocator_.free(offset);
  }

  // Collective: announces that this process makes no more calls in the job, and returns when all
  // others have done so. It is not a barrier: a peer in another collective learns that this process
  // will not come. kUnavailable reports that a peer waited, and kTimeout names the missing PEs. The
  // caller has completed its puts.
  Status end(const char* what, EndKind how);
  // Takes this process out for good, also during its calls (NodeSegment::mark_departed()). Waits
  // until other nodes know it, or the deadline passes.
  void depart(const Deadline& deadline);
  // Asks all processes of the job, on all nodes, to end with `code`.
  void request_exit(int code);
  // In a child of fork(): gives up what peers could mistake for this process.
  void forget_in_child() {
    membership_.forget_in_child();
    if (linked_ != nullptr) linked_->forget_in_child();
  }
  // Notes that this process leaves on purpose. The caller has made sure (by end()) that no peer
  // uses its memory any more.
  void leave() {
    membership_.segment->peer(rank()).state.store(PeerState::kLeft, std::memory_order_release);
  }

 private:
  World(Membership membership, std::size_t heap_bytes, CommitMode mode);
  Status list();
  Status map_segments(StaticVariables variables);
  Status choose_transports();
  Status map_node();
  Status link_peers();
  void fill_table();
  Status connect_near_segment(int peer);
  Status wait_for_ends(const char* what);
  Status explain_end(const Status& status) const;

  // First, so destroyed last: the end of the others is still recorded.
  ListedMember listed_;
  Membership membership_;
  std::size_t heap_bytes_;
  CommitMode commit_mode_;
  std::size_t part_bytes_;  // internal area + heap: what one PE has in the address range
  StaticSegment static_segment_;
  // This node's PEs by index: all parts, then all static segments.
  std::unique_ptr<Reservation> range_;
  // How this PE, others of this node and those of other nodes are reached; empty if there are no
  // such PEs.
  const TransportChoice own_{"own", "own: it is this process's memory"};
  TransportChoice near_;
  TransportChoice far_;
  OperationContext operations_;
  std::vector<Route> routes_;
  std::vector<Route> data_routes_;
  RouteTable table_;
  std::unique_ptr<SymmetricHeap> heap_;
  Mutex internal_mutex_;
  Allocator internal_allocator_ MEMSPAN_GUARDED_BY(internal_mutex_);
  WaitContext waiting_;
  Messages messages_{waiting_};
  std::unique_ptr<LinkedPeers> linked_;          // null when all are mapped
  std::unique_ptr<DeviceRoutes> device_routes_;  // null in a job without a device
  std::unique_ptr<DeviceHeap> device_heap_;

  std::size_t place_of(int peer) const { return static_cast<std::size_t>(nodes().index_of(peer)); }
  std::size_t parts() const { return nodes().peers_of(membership_.node()).size(); }
};

}  // namespace memspan::inline world
