// SPDX-License-Identifier: Apache-2.0
// Which PE of a job is on which node. A node is a set of processes that share memory: a host, or a
// simulated one (docs/hosts.md). PEs count over all nodes, in any order; a PE's index counts those
// of its own node, in the order of PEs. Nodes are numbered in the order of their lowest PE.
#pragma once

#include <string>
#include <vector>

namespace memspan::inline world {

// A value. On one node it has no table by PE.
class NodeMap {
 public:
  // All on one node. `host` is for messages.
  explicit NodeMap(int peers = 1, std::string host = {});
  // By each PE's host: those with the same one are a node. `names`, of the same order, is for
  // messages.
  static NodeMap of_hosts(const std::vector<std::string>& hosts,
                          const std::vector<std::string>& names);
  static NodeMap of_hosts(const std::vector<std::string>& hosts) { return of_hosts(hosts, hosts); }

  int peers() const { return peers_; }
  int count() const { return static_cast<int>(hosts_.size()); }
  bool is_one() const { return node_of_.empty(); }

  int node_of(int peer) const { return is_one() ? 0 : node_of_[peer]; }
  // Among the PEs of its node, from 0.
  int index_of(int peer) const { return is_one() ? peer : index_of_[peer]; }
  bool share_node(int one, int other) const { return node_of(one) == node_of(other); }

  // The PEs of the node, ascending.
  const std::vector<int>& peers_of(int node) const { return peers_of_[node]; }
  int peers_in(int node) const { return static_cast<int>(peers_of_[node].size()); }
  // The PE with this index in the node.
  int peer_of(int node, int index) const { return peers_of_[node][index]; }
  // The lowest PE of the node, living or not.
  int leader_of(int node) const { return peer_of(node, 0); }

  // The host's name.
  const std::string& host_of_node(int node) const { return hosts_[node]; }
  const std::string& host_of(int peer) const { return host_of_node(node_of(peer)); }
  // "PE 3", or "PE 3 on host sim-1" where there are several.
  std::string describe(int peer) const;

 private:
  int peers_;
  std::vector<std::string> hosts_;          // names, by node
  std::vector<std::vector<int>> peers_of_;  // by node
  // By PE; empty on one node.
  std::vector<int> node_of_;
  std::vector<int> index_of_;
};

}  // namespace memspan::inline world
