// SPDX-License-Identifier: Apache-2.0
#include "world/route.h"

namespace memspan::inline world {

const Route* RouteTable::find_elsewhere(const void* address, std::size_t length, int peer) const {
  if (static_cast<std::uint32_t>(peer) >= peers) return nullptr;
  const SymmetricRegion* region = &data;
  if (!data.contains(address, length)) {
    region = device_region();
    if (region == nullptr || !region->contains(address, length)) return nullptr;
  }
  // A peer that runs another program has no copy.
  const Route& route = region->routes[peer];
  return route.is_direct() || route.link != nullptr ? &route : nullptr;
}

const SymmetricRegion& RouteTable::region_elsewhere(const void* address) const {
  return is_on_device(address, 0) ? *device_region() : data;
}

}  // namespace memspan::inline world
