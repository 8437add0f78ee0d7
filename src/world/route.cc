// SPDX-License-Identifier: Apache-2.0
#include "world/route.h"

namespace memspan {

const Route* RouteTable::find_in_data(const void* address, std::size_t length, int peer) const {
  if (!data.contains(address, length) || static_cast<std::uint32_t>(peer) >= peers) return nullptr;
  // A peer that runs another program has no copy.
  const Route& route = data.routes[peer];
  return route.is_direct() || route.link != nullptr ? &route : nullptr;
}

}  // namespace memspan
