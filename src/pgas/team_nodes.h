// SPDX-License-Identifier: Apache-2.0
// The members, by node, of a team on several nodes, and an exchange among the nodes' leaders (a
// node's first member) of the data that each node gathered.
//
//   members of a node -> lines in the node's sync area -> leader == messages == other leaders
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"
#include "world/team_shape.h"
#include "world/world.h"

namespace memspan {

// Immutable. The same on all members, except for the own node.
class TeamNodes {
 public:
  // Null when all members of `shape` are on the node of this process.
  static std::unique_ptr<TeamNodes> of(const World& world, const TeamShape& shape);

  // Nodes are in the order of their first members.
  int count() const { return static_cast<int>(members_.size()); }
  int mine() const { return mine_; }
  int node_of(int member) const { return node_of_[static_cast<std::size_t>(member)]; }
  // Ascending.
  const std::vector<int>& members(int node) const {
    return members_[static_cast<std::size_t>(node)];
  }
  const std::vector<int>& near() const { return members(mine_); }
  int leader(int node) const { return members(node)[0]; }
  int my_leader() const { return leader(mine_); }
  // Whether in a barrier each leader sends to each. After such a barrier, earlier puts of leaders
  // to leaders are applied without a quiet, since links keep order. Beyond so many nodes the
  // leaders pass messages on in more steps.
  bool is_direct() const { return count() <= kMostDirect; }

 private:
  static constexpr int kMostDirect = 4;

  std::vector<std::vector<int>> members_;
  std::vector<int> node_of_;
  int mine_ = 0;
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
  static Status run(const Place& place, const Block& mine,
                    const std::function<Status(int node, std::span<const std::byte>)>& take);
  // Sends a failure in place of this node's block. `peer` is the PE that is lost, or -1.
  static void tell_failure(const Place& place, Code code, int peer);
};

}  // namespace memspan
