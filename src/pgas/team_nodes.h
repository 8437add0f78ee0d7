// SPDX-License-Identifier: Apache-2.0
// The members of a team, also by node if it is on several, and an exchange among the nodes' leaders
// (a node's first member) of the data that each node gathered.
//
//   members of a node -> lines in the node's sync area -> leader == messages == other leaders
#pragma once

#include <cstring>

#include "world/world.h"

namespace memspan {

// Which peers a team has: an arithmetic progression, or, after some have died, a list.
// A value. Member i of size has peer number start + i * stride (stride may be negative; 0 for
// one), or list[i] where there is a list.
struct TeamShape {
  int start = 0;
  int stride = 1;
  int size = 1;
  std::shared_ptr<const std::vector<int>> list = nullptr;

  static TeamShape of(std::vector<int> peers) {
    const auto size = static_cast<int>(peers.size());
    return {peers[0], 0, size, std::make_shared<const std::vector<int>>(std::move(peers))};
  }

  int peer_of(int member) const {
    return list == nullptr ? start + member * stride : (*list)[member];
  }
  // -1 when `peer` is not a member.
  int member_of(int peer) const {
    if (list != nullptr) {
      const auto found = std::find(list->begin(), list->end(), peer);
      return found == list->end() ? -1 : static_cast<int>(found - list->begin());
    }
    if (stride == 0) return peer == start ? 0 : -1;
    int distance = peer - start;
    int member = distance / stride;
    return distance % stride == 0 && member >= 0 && member < size ? member : -1;
  }
  // The part of it that `part`, which counts its members, names.
  TeamShape part(const TeamShape& part) const {
    if (list == nullptr) return {peer_of(part.start), part.stride * stride, part.size};
    std::vector<int> peers;
    peers.reserve(static_cast<std::size_t>(part.size));
    for (int member = 0; member < part.size; ++member)
      peers.push_back(peer_of(part.peer_of(member)));
    return of(std::move(peers));
  }
  bool operator==(const TeamShape& other) const {
    if (size != other.size) return false;
    for (int member = 0; member < size; ++member)
      if (peer_of(member) != other.peer_of(member)) return false;
    return true;
  }
};

// Immutable. The same on all members, except for the own node.
class TeamNodes {
 public:
  // Null when all members of `shape` are on one node.
  static std::unique_ptr<TeamNodes> of(const World& world, const TeamShape& shape);
  // `map` counts members instead of PEs.
  TeamNodes(NodeMap map, int mine) : map_(std::move(map)), mine_(mine) {}

  // Nodes are in the order of their first members.
  int count() const { return map_.count(); }
  int mine() const { return mine_; }
  int node_of(int member) const { return map_.node_of(member); }
  // Ascending.
  const std::vector<int>& members(int node) const { return map_.peers_of(node); }
  const std::vector<int>& near() const { return members(mine_); }
  int leader(int node) const { return members(node)[0]; }
  int my_leader() const { return leader(mine_); }
  // Whether in a barrier each leader sends to each. After such a barrier, earlier puts of leaders
  // to leaders are applied without a quiet, since links keep order. Beyond so many nodes the
  // leaders pass messages on in more steps.
  bool is_direct() const { return count() <= kMostDirect; }

 private:
  static constexpr int kMostDirect = 4;

  const NodeMap map_;
  const int mine_;
};

// The first member of `shape` on the node of this process; -1 if it has none there.
int first_near_member(const World& world, const TeamShape& shape);

// The peer that a wait names if it cannot succeed without `missing`: of it and the dead members the
// first to be lost, since the others may have gone because of it. -1 when `missing` is.
int first_lost(const World& world, const TeamShape& shape, int missing);

// The bytes of one node's members on their way to other leaders.
class LeaderExchange {
 public:
  using Block = std::vector<std::byte>;
  using Take = std::function<Status(int node, std::span<const std::byte>)>;
  template <typename T>
  static void append(Block& to, const T& value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), from, from + sizeof value);
  }
  // False if there are not as many bytes.
  template <typename T>
  static bool read(std::span<const std::byte>& from, T& value) {
    if (from.size() < sizeof value) return false;
    std::memcpy(&value, from.data(), sizeof value);
    from = from.subspan(sizeof value);
    return true;
  }
  struct Place {
    World& world;
    const TeamShape& shape;
    const TeamNodes& nodes;
    MessageKey key;
    const char* what;
  };
  // Gives take(node, block) the block of every other node; called by all leaders. Directly among
  // few nodes, by dissemination among many. kPeerLost: a member is gone whose node has not sent its
  // block. If another leader reported a failure (tell_failure), that one.
  static Status run(const Place& place, const Block& mine, const Take& take);
  // Sends a failure in place of this node's block. `peer` is the PE that is lost, or -1.
  static void tell_failure(const Place& place, Code code, int peer);
};

}  // namespace memspan
