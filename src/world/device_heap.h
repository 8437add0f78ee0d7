// SPDX-License-Identifier: Apache-2.0
// The symmetric heap in memory of a device (MEMSPAN_DEVICE=cuda), beside the heap of the host. Each
// PE provides memory of its device. The PEs of a node map all of it in one range, at the same
// address in each:
//
//   | part of the node's first PE | part of the second | ...
//
// All PEs make it together when its first piece is requested: all have it, or none.
// docs/design/0019-device-heap.md
#pragma once

#include "device/memory.h"
#include "memory/allocator.h"
#include "node/descriptor_broker.h"
#include "transport/link.h"
#include "transport/message/message_transport.h"
#include "world/linked_peers.h"
#include "world/route.h"

namespace memspan::inline transport {
class DeviceLink;
}

namespace memspan::inline world {

// The routes that the program's calls take in a job whose memory may be on a device
// (MEMSPAN_DEVICE): links that look at both ends of a copy. Inline code finds no direct route in
// this table, so only such jobs pay for the look.
//
// The library's own memory is host memory; World::routes() reaches it as in other jobs.

inline constexpr std::uint32_t kDeviceHeapRegion = 3;

class DeviceHeap;

// Made when the process joins; then thread-safe.
class DeviceRoutes : NotCopyable {
 public:
  // Over the routes to the heap in `plain`, which must outlive it.
  explicit DeviceRoutes(const RouteTable& plain);
  ~DeviceRoutes();

  const RouteTable& table() const { return table_; }
  // Call it once the static variables are connected.
  void add_data(const SymmetricRegion& data);

  // One of `regions` for each PE's part, which is mapped here or exposed by the PE. Called once.
  void show_heap(const DeviceHeap& heap, std::vector<RemoteRegion> regions);
  // Hides the heap from later calls. No call may be using it.
  void hide_heap() { device_.store(nullptr, std::memory_order_release); }

 private:
  std::vector<Route> convert(const SymmetricRegion& region, const RemoteRegion& near_region);

  std::vector<std::unique_ptr<DeviceLink>> peers_;  // the link to each PE
  std::vector<Route> heap_;
  std::vector<Route> data_;
  std::vector<Route> device_routes_;
  RemoteRegion heap_region_;  // of PEs that are mapped
  RemoteRegion data_region_;
  std::vector<RemoteRegion> device_regions_;  // by PE
  SymmetricRegion device_region_;
  std::atomic<const SymmetricRegion*> device_{nullptr};
  RouteTable table_;
};

// MEMSPAN_DEVICE_HEAP_SIZE, else `fallback`; whole pages of devices.
Result<std::size_t> device_heap_bytes(std::size_t fallback);

// One thread at a time.
class DeviceHeap : NotCopyable {
 public:
  // The objects it is made with. All must outlive it.
  struct Place {
    const NodeMap& nodes;
    int rank = 0;
    const RouteTable& plain;        // shows which PEs are mapped
    LinkedPeers* linked = nullptr;  // exposes it to the others
    DeviceRoutes& routes;
  };

  // Collective over all processes, which exchange texts by `exchange`. If it fails on one, it fails
  // on all with that reason and leaves nothing behind. kOutOfMemory, kUnavailable (no address range
  // is free in all), kNotSupported (no device), kInvalidArgument (devices or sizes differ).
  static Result<std::unique_ptr<DeviceHeap>> make(const Place& place, Device& device,
                                                  std::size_t bytes, const Exchange& exchange,
                                                  Deadline deadline);
  // Hides it: a job has one at a time.
  ~DeviceHeap() { place_.routes.hide_heap(); }

  Device& device() const { return device_; }
  std::byte* base() const { return part_of(index_); }  // of this process's part
  std::size_t bytes() const { return bytes_; }
  const Allocator& allocator() const { return allocator_; }
  bool contains(const void* pointer) const { return offset_of(pointer) < bytes_; }
  std::byte* allocate(std::size_t bytes, std::size_t alignment) {
    const auto offset = allocator_.allocate(bytes, alignment);
    return offset ? base() + *offset : nullptr;
  }
  bool free(void* pointer) { return contains(pointer) && allocator_.free(offset_of(pointer)); }
  bool has_block(const void* pointer) const {
    return contains(pointer) && allocator_.size_of(offset_of(pointer));
  }
  // The address of `peer`'s copy in this process; null if it is not mapped.
  std::byte* address_at(const void* pointer, int peer) const {
    return is_mapped(peer) ? part_of(place_.nodes.index_of(peer)) + offset_of(pointer) : nullptr;
  }

 private:
  DeviceHeap(const Place& place, Device& device, std::size_t bytes)
      : place_(place),
        device_(device),
        bytes_(bytes),
        index_(place.nodes.index_of(place.rank)),
        allocator_(bytes) {}
  bool is_mapped(int peer) const { return place_.plain.heap.routes[peer].is_direct(); }
  // Wraps around before the part.
  std::size_t offset_of(const void* pointer) const {
    return static_cast<const std::byte*>(pointer) - base();
  }
  std::byte* part_of(std::size_t index) const { return range_->base() + index * bytes_; }
  const std::vector<int>& near_peers() const {
    return place_.nodes.peers_of(place_.nodes.node_of(place_.rank));
  }
  // Opens the broker, which then hands over this process's memory.
  Result<std::string> give(std::unique_ptr<DescriptorBroker>& broker);
  Status find_place(const Exchange& exchange);
  Status reserve(std::uint64_t number);
  Result<std::string> map_and_expose(DescriptorBroker& broker,
                                     const std::vector<std::string>& brokers,
                                     const Deadline& deadline);
  Result<std::vector<RemoteRegion>> read_regions(const std::vector<std::string>& texts) const;

  const Place place_;
  Device& device_;
  const std::size_t bytes_;
  const std::size_t index_;  // in the node
  Allocator allocator_;
  std::unique_ptr<DeviceMemory> memory_;  // of this process
  std::unique_ptr<DeviceRange> range_;
  std::unique_ptr<ExposedRegion> exposed_;
};

}  // namespace memspan::inline world
