// SPDX-License-Identifier: Apache-2.0
#include "world/node_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_map>

namespace memspan::inline world {

NodeMap::NodeMap(int peers, std::string host)
    : peers_(peers),
      hosts_{std::move(host)},
      peers_of_{std::vector<int>(static_cast<std::size_t>(std::max(peers, 0)))} {
  std::iota(peers_of_[0].begin(), peers_of_[0].end(), 0);
}

NodeMap NodeMap::of_hosts(const std::vector<std::string>& hosts,
                          const std::vector<std::string>& names) {
  NodeMap map(static_cast<int>(hosts.size()), names.empty() ? std::string() : names[0]);
  if (std::adjacent_find(hosts.begin(), hosts.end(), std::not_equal_to<>()) == hosts.end())
    return map;
  map.hosts_.clear();
  map.peers_of_.clear();
  std::unordered_map<std::string, int> nodes;
  for (std::size_t peer = 0; peer < hosts.size(); ++peer) {
    const auto [found, is_new] = nodes.emplace(hosts[peer], map.count());
    if (is_new) {
      map.hosts_.push_back(names[peer]);
      map.peers_of_.emplace_back();
    }
    std::vector<int>& peers = map.peers_of_[found->second];
    map.node_of_.push_back(found->second);
    map.index_of_.push_back(static_cast<int>(peers.size()));
    peers.push_back(static_cast<int>(peer));
  }
  return map;
}

std::string NodeMap::describe(int peer) const {
  return is_one() ? fmt::format("PE {}", peer)
                  : fmt::format("PE {} on host {}", peer, host_of(peer));
}

}  // namespace memspan::inline world
