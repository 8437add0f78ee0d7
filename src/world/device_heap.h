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

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agreement.h"
#include "core/status.h"
#include "device/memory.h"
#include "memory/allocator.h"
#include "node/descriptor_broker.h"
#include "transport/message/message_transport.h"
#include "world/device_routes.h"
#include "world/linked_peers.h"
#include "world/node_map.h"

namespace memspan {

// MEMSPAN_DEVICE_HEAP_SIZE, else `fallback`; whole pages of devices.
Result<std::size_t> device_heap_bytes(std::size_t fallback);

// One thread at a time.
class DeviceHeap {
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
  ~DeviceHeap();
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  Device& device() const { return device_; }
  std::byte* base() const { return part_of(index_); }  // of this process's part
  std::size_t bytes() const { return bytes_; }
  const Allocator& allocator() const { return allocator_; }
  bool contains(const void* pointer) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base()) < bytes_;
  }
  std::byte* allocate(std::size_t bytes, std::size_t alignment);
  bool free(void* pointer);
  bool has_block(const void* pointer) const;
  // The address of `peer`'s copy in this process; null if it is not mapped.
  std::byte* address_at(const void* pointer, int peer) const;

 private:
  struct Introduction;
  DeviceHeap(const Place& place, Device& device, std::size_t bytes)
      : place_(place),
        device_(device),
        bytes_(bytes),
        index_(static_cast<std::size_t>(place.nodes.index_of(place.rank))),
        allocator_(bytes) {}
  bool is_mapped(int peer) const {
    return place_.plain.heap.routes[static_cast<std::size_t>(peer)].is_direct();
  }
  std::byte* part_of(std::size_t index) const { return range_->base() + index * bytes_; }
  std::size_t parts() const;
  Result<std::string> give(DescriptorBroker& broker);
  Status check_same(const std::vector<Introduction>& all) const;
  Status find_place(const Exchange& exchange);
  Status reserve(std::uint64_t number);
  Status map_parts(DescriptorBroker& broker, const std::vector<Introduction>& all,
                   const Deadline& deadline);
  Result<std::string> expose();
  Status connect(const std::vector<std::string>& regions,
                 std::vector<DeviceRoutes::DevicePart>& parts);

  const Place place_;
  Device& device_;
  const std::size_t bytes_;
  const std::size_t index_;  // in the node
  Allocator allocator_;
  std::unique_ptr<DeviceMemory> memory_;  // of this process
  std::unique_ptr<DeviceRange> range_;
  std::unique_ptr<ExposedRegion> exposed_;
  bool is_shown_ = false;
};

}  // namespace memspan
