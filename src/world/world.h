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
#include "memory/static_segment.h"
#include "memory/symmetric_heap.h"
#include "node/counters.h"
#include "node/segment.h"
#include "node/wait.h"
#include "transport/registry.h"
#include "transport/transport.h"
#include "world/device_heap.h"
#include "world/device_routes.h"
#include "world/linked_peers.h"
#include "world/membership.h"
#include "world/messages.h"
#include "world/node_map.h"
#include "world/route.h"

namespace memspan {

// Whether the variables of the main program are symmetric in a World: in one of a process.
enum class StaticVariables { kShared, kOwn };

// The largest symmetric heap that a start takes on a host with so much memory, as MEMSPAN_COMMIT
// says; `stride` as heap_file_stride() gives it. kInvalidArgument when MEMSPAN_COMMIT is wrong.
Result<std::uint64_t> most_heap_bytes(std::uint64_t memory_bytes, std::uint64_t stride);

// Members order is destruction order: links before transport before mappings before descriptors.
class World {
 public:
  // Maps the heap (`heap_bytes` > 0, the same in every process) and connects to every peer of
  // `membership`. Touches no heap memory.
  static Result<std::unique_ptr<World>> create(
      Membership membership, std::size_t heap_bytes,
      StaticVariables variables = StaticVariables::kShared);
  // Maps the variables of all peers that run the same program. To be called once all have made
  // their World; before it, and for other programs' peers, they are not symmetric.
  Status connect_static_segments();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return membership_.rank; }
  int size() const { return membership_.size; }
  const NodeMap& nodes() const { return membership_.nodes; }
  // Whether this process and `peer` share memory: only then there is an internal_area() of it.
  bool is_near(int peer) const { return nodes().share_node(peer, rank()); }
  // To and from PEs of other nodes.
  Messages& messages() { return messages_; }
  // Of this node. It has a slot for every PE of the job; those of other nodes' PEs are written when
  // this node is told of their ends and deaths.
  const NodeSegment& segment() const { return *membership_.segment; }
  // More processes on this node than cores that any of them may use.
  bool is_oversubscribed() const { return segment().is_oversubscribed(); }
  Membership& membership() { return membership_; }
  // For the library's own memory, and all else that is the host's.
  const RouteTable& routes() const { return table_; }
  // For memory that the program names: the same, unless it may be memory of a device.
  const RouteTable& program_routes() const {
    return device_routes_ == nullptr ? table_ : device_routes_->table();
  }
  const Route& route(int peer) const { return routes_[static_cast<std::size_t>(peer)]; }
  WaitContext& waiting() { return waiting_; }
  SymmetricHeap& heap() { return *heap_; }
  // Says to those who watch how much of the heap is in use now.
  void tell_heap_use() const { listed_.set_memory(heap_bytes_, heap_->allocator().bytes_in_use()); }
  // Whether the job may use memory of another device: MEMSPAN_DEVICE says so here.
  bool wants_device() const { return device_routes_ != nullptr; }
  // The heap in memory of the device; null before it is made.
  DeviceHeap* device_heap() { return device_heap_.get(); }
  // Collective: as DeviceHeap::make(). Where there is one already, or none is wanted, it is a
  // mistake of ours.
  Status make_device_heap(const ExchangeTexts& exchange);
  CommitMode commit_mode() const { return commit_mode_; }
  // What the default context has outstanding on links.
  OperationContext& operations() { return operations_; }
  // How this process reaches `peer`, and why so: "message: they are on different hosts".
  std::string describe_route(int peer) const;
  std::string_view transport_to(int peer) const;  // "own", "mapped" or "message"
  // Of all PEs in a line.
  std::string describe_routes() const;
  // Of the transport "message"; empty where it is not in use.
  std::vector<MessageCounter> message_counters() const;

  // The heap of a PE of this node as this process sees it.
  std::byte* heap_of(int peer) const { return internal_area(peer) + kInternalBytes; }
  // The library's own area in the segment of a PE of this node: kInternalBytes bytes. A PE of
  // another node is a mistake of ours and aborts: ask is_near().
  std::byte* internal_area(int peer) const;
  // The pages of that memory in a heap of this node stay when this ends (Reservation::keep).
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
  // Takes this process out for good, also during its calls (NodeSegment::mark_departed()).
  void depart();
  // Asks all processes of the job, on all nodes, to end with `code`.
  void request_exit(int code);
  // In a child of fork(): gives up what the peers could take for this process.
  void forget_in_child();
  // Notes that this process leaves on purpose. The caller has made sure (by end()) that no peer
  // uses its memory any more.
  void leave();

 private:
  World(Membership membership, std::size_t heap_bytes, CommitMode mode,
        const CommitSettings& settings);
  Status list();
  Status map_segments(StaticVariables variables);
  Status choose_transports();
  Status map_node();
  Status link_peers();
  void fill_table();
  void connect_far_segment(int peer);
  Status connect_near_segment(int peer);
  Status wait_for_ends(const char* what);
  Status explain_end(const Status& status) const;

  // First: the end of the others is still seen.
  ListedMember listed_;
  Membership membership_;
  std::size_t heap_bytes_;
  CommitMode commit_mode_;
  CommitSettings commit_settings_;
  std::size_t part_bytes_;  // internal area + heap: what one PE has in the address range
  StaticSegment static_segment_;
  // Of this node's PEs, by index: all parts, then all static segments.
  std::unique_ptr<Reservation> range_;
  std::unique_ptr<Transport> transport_;      // `mapped`
  std::vector<std::unique_ptr<Link>> links_;  // of this node's PEs, by index
  // How PEs of this node are reached, and those of others; empty when there are none.
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
  std::size_t parts() const {
    return static_cast<std::size_t>(nodes().peers_in(nodes().node_of(rank())));
  }
};

}  // namespace memspan
