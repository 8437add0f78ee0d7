// SPDX-License-Identifier: Apache-2.0
// The routes that the program's calls take in a job whose memory may be on a device
// (MEMSPAN_DEVICE): links that look at both ends of a copy. Inline code finds no direct route in
// this table, so only such jobs pay for the look.
//
// The library's own memory is host memory; World::routes() reaches it as in other jobs.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "transport/device_link.h"
#include "world/route.h"

namespace memspan {

inline constexpr std::uint32_t kDeviceHeapRegion = 3;

// Made when the process joins; then thread-safe.
class DeviceRoutes {
 public:
  // Over the routes to the heap in `plain`, which must outlive it.
  explicit DeviceRoutes(const RouteTable& plain);
  DeviceRoutes(const DeviceRoutes&) = delete;
  DeviceRoutes& operator=(const DeviceRoutes&) = delete;

  const RouteTable& table() const { return table_; }
  // Call it once the static variables are connected.
  void add_data(const SymmetricRegion& data);

  // A PE's part of the heap in device memory: mapped here, or exposed by the PE.
  struct DevicePart {
    std::byte* mapped_at = nullptr;
    RemoteRegion region;
  };
  // `mine` is this process's part; one of `parts` for each PE. Called once.
  void show_heap(std::byte* mine, std::size_t bytes, const std::vector<DevicePart>& parts);
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

}  // namespace memspan
