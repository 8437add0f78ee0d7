// SPDX-License-Identifier: Apache-2.0
#include "pgas/order.h"

namespace memspan::pgas {

Status fence_links(const RouteTable& table) {
  for (std::uint32_t peer = 0; peer < table.peers; ++peer)
    if (!table.routes[peer].is_direct()) MEMSPAN_TRY(table.routes[peer].link->fence(), "fence");
  return Status::ok();
}

Status quiet_links(const RouteTable& table) {
  for (std::uint32_t peer = 0; peer < table.peers; ++peer)
    if (!table.routes[peer].is_direct()) MEMSPAN_TRY(table.routes[peer].link->quiet(), "quiet");
  return Status::ok();
}

bool has_links(const RouteTable& table) {
  for (std::uint32_t peer = 0; peer < table.peers; ++peer)
    if (!table.routes[peer].is_direct()) return true;
  return false;
}

}  // namespace memspan::pgas
