// SPDX-License-Identifier: Apache-2.0
#include "pgas/order.h"

namespace memspan::pgas {

Status fence_links(const RouteTable& table) {
  return table.operations == nullptr ? Status::ok() : table.operations->fence().annotate("fence");
}

Status quiet_links(const RouteTable& table) {
  return table.operations == nullptr ? Status::ok() : table.operations->quiet().annotate("quiet");
}

bool has_links(const RouteTable& table) {
  // A peer that is reached by a link is so for all regions.
  for (std::uint32_t peer = 0; peer < table.peers; ++peer)
    if (!table.heap.routes[peer].is_direct()) return true;
  return false;
}

}  // namespace memspan::pgas
