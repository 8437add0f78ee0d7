// SPDX-License-Identifier: Apache-2.0
// The members of a team, also by node if it is on several.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "world/world.h"

namespace memspan::inline pgas {

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

// kInvalidArgument, naming the reason, when `shape` does not fit a parent of `parent_size`.
Status check_shape(const TeamShape& shape, int parent_size);

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

// The members of a team, this process among them, and the team's name. Immutable, but for
// need_all_alive().
class TeamMembers : NotCopyable {
 public:
  // Names the team in messages: never used twice, the same on all members.
  using Id = std::uint64_t;

  TeamMembers(World& world, const TeamShape& shape, Id id)
      : world_(world), shape_(shape), id_(id) {}

  World& world() const { return world_; }
  Id id() const { return id_; }
  const TeamShape& shape() const { return shape_; }
  int size() const { return shape_.size; }
  int index() const { return index_; }  // of this process
  int peer_of(int member) const { return shape_.peer_of(member); }
  bool is_near(int member) const { return world_.is_near(peer_of(member)); }
  // By its number among the deaths, which is set after the count of all and implies it.
  bool is_alive(int member) const { return !world_.segment().peer(peer_of(member)).is_dead(); }
  // Null when all members are on this node.
  const TeamNodes* nodes() const { return nodes_.get(); }
  // The first of the members on this node, and how many those are.
  int node_leader() const { return nodes_ ? nodes_->my_leader() : 0; }
  bool is_node_leader() const { return index_ == node_leader(); }
  int near_members() const {
    return nodes_ ? static_cast<int>(nodes_->near().size()) : shape_.size;
  }
  // The peer that a wait names if it cannot succeed without `missing`: of it and the dead members
  // the first to be lost, since the others may have gone because of it. -1 when `missing` is,
  // unless all must be alive.
  int first_lost(int missing) const;
  // Whether a wait for members also fails by the death of one that has done its part.
  void need_all_alive(bool does) { needs_all_alive_ = does; }

 private:
  World& world_;
  const TeamShape shape_;
  const int index_ = shape_.member_of(world_.rank());
  const std::unique_ptr<TeamNodes> nodes_ = TeamNodes::of(world_, shape_);  // null on one node
  const Id id_;
  bool needs_all_alive_ = false;
};

}  // namespace memspan::inline pgas
