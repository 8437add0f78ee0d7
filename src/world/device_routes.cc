// SPDX-License-Identifier: Apache-2.0
#include "world/device_routes.h"

#include "world/linked_peers.h"

namespace memspan {

DeviceRoutes::DeviceRoutes(const RouteTable& plain)
    : peers_(plain.peers), heap_region_{{kHeapRegion, 1}, plain.heap.bytes, MemoryKind::kHost, {}} {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    const Route& route = plain.heap.routes[peer];
    peers_[peer] = std::make_unique<DeviceLink>(route.is_direct() ? nullptr : route.link);
  }
  heap_ = convert(plain.heap, heap_region_);
  table_ = plain;
  table_.heap.routes = heap_.data();
  table_.device = &device_;
}

// Routes to the same memory as those of `region`, by links of this table.
std::vector<Route> DeviceRoutes::convert(const SymmetricRegion& region,
                                         const RemoteRegion& near_region) {
  std::vector<Route> routes(peers_.size());
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    const Route& plain = region.routes[peer];
    Route& route = routes[peer];
    route.slot = plain.slot;
    if (plain.is_direct()) {
      auto* const mine = reinterpret_cast<std::byte*>(region.base);  // NOLINT: an address
      peers_[peer]->add(near_region, plain.address(mine));
      route.link = peers_[peer].get();
      route.region = &near_region;
    } else if (plain.link != nullptr) {
      route.link = peers_[peer].get();
      route.region = plain.region;
    }
  }
  return routes;
}

void DeviceRoutes::add_data(const SymmetricRegion& data) {
  if (data.bytes == 0) return;
  data_region_ = {{kStaticRegion, 1}, data.bytes, MemoryKind::kHost, {}};
  data_ = convert(data, data_region_);
  table_.data = data;
  table_.data.routes = data_.data();
}

void DeviceRoutes::show_heap(std::byte* mine, std::size_t bytes,
                             const std::vector<DevicePart>& parts) {
  device_regions_.reserve(parts.size());
  device_routes_.resize(parts.size());
  for (std::size_t peer = 0; peer < parts.size(); ++peer) {
    const DevicePart& part = parts[peer];
    const RemoteRegion& region = device_regions_.emplace_back(part.region);
    Route& route = device_routes_[peer];
    route.slot = heap_[peer].slot;
    route.region = &region;
    route.link = heap_[peer].link;
    if (part.mapped_at != nullptr) peers_[peer]->add(region, part.mapped_at);
  }
  device_region_ = {reinterpret_cast<std::uintptr_t>(mine), bytes, device_routes_.data(), 0};
  device_.store(&device_region_, std::memory_order_release);
}

}  // namespace memspan
