// SPDX-License-Identifier: Apache-2.0
#include "pgas/order.h"

namespace memspan::pgas {
namespace {

// Calls ask(link) for every link that has to be asked.
template <typename Ask>
Status for_each_link(const RouteTable& table, Ask ask) {
  for (const SymmetricRegion* region : {&table.heap, &table.data})
    for (std::uint32_t peer = 0; region->routes != nullptr && peer < table.peers; ++peer) {
      const Route& route = region->routes[peer];
      if (!route.is_direct() && route.link != nullptr) MEMSPAN_PASS(ask(*route.link));
    }
  return Status::ok();
}

}  // namespace

Status fence_links(const RouteTable& table) {
  return for_each_link(table, [](Link& link) { return link.fence().annotate("fence"); });
}

Status quiet_links(const RouteTable& table) {
  return for_each_link(table, [](Link& link) { return link.quiet().annotate("quiet"); });
}

bool has_links(const RouteTable& table) {
  // Whoever is reached by a link is for all regions.
  for (std::uint32_t peer = 0; peer < table.peers; ++peer)
    if (!table.heap.routes[peer].is_direct()) return true;
  return false;
}

}  // namespace memspan::pgas
