// SPDX-License-Identifier: Apache-2.0
#include "pgas/team_members.h"

#include <fmt/format.h>

namespace memspan::inline pgas {

Status check_shape(const TeamShape& shape, int parent_size) {
  auto in_parent = [&](std::int64_t member) { return member >= 0 && member < parent_size; };
  std::int64_t last = shape.start + (static_cast<std::int64_t>(shape.size) - 1) * shape.stride;
  if (shape.size >= 1 && (shape.stride != 0 || shape.size == 1) && in_parent(shape.start) &&
      in_parent(last))
    return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("start {}, stride {}, size {} do not fit into a team of {}", shape.start,
                      shape.stride, shape.size, parent_size)};
}

std::unique_ptr<TeamNodes> TeamNodes::of(const World& world, const TeamShape& shape) {
  if (world.nodes().is_one()) return nullptr;
  std::vector<std::string> nodes;  // the job's, by member
  nodes.reserve(static_cast<std::size_t>(shape.size));
  for (int member = 0; member < shape.size; ++member)
    nodes.push_back(std::to_string(world.nodes().node_of(shape.peer_of(member))));
  NodeMap map = NodeMap::of_hosts(nodes);
  if (map.is_one()) return nullptr;
  // A process that is not a member may have none on its node.
  const int mine = map.node_of(std::max(0, first_near_member(world, shape)));
  return std::make_unique<TeamNodes>(std::move(map), mine);
}

int first_near_member(const World& world, const TeamShape& shape) {
  for (int member = 0; member < shape.size; ++member)
    if (world.is_near(shape.peer_of(member))) return member;
  return -1;
}

int TeamMembers::first_lost(int missing) const {
  if (missing < 0 && !needs_all_alive_) return -1;
  int first = missing;
  for (int member = 0; member < size(); ++member)
    if (const int peer = peer_of(member); world_.segment().peer(peer).is_dead())
      first = earlier_lost(world_.segment(), first, peer);
  return first;
}

}  // namespace memspan::inline pgas
