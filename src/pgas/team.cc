// SPDX-License-Identifier: Apache-2.0
#include "pgas/team.h"

namespace memspan::inline pgas {
namespace {

// The world team's area is at the start of the internal area of each node's leader, so that all
// know it unasked.
constexpr std::uint64_t kWorldAreaOffset = 0;

}  // namespace

std::unique_ptr<Team> Team::world(World& world) {
  // The leader hands out none of it later.
  if (world.rank() == world.nodes().leader_of(world.nodes().node_of(world.rank()))) {
    const auto offset = world.allocate_internal(SyncArea::bytes_for(world.size()));
    MEMSPAN_CHECK(offset == kWorldAreaOffset);
  }
  return at(world, TeamShape{0, 1, world.size()}, kWorldAreaOffset, 0);
}

Team::Id Team::id_of(int maker, std::uint64_t place) {
  // Ids of teams that are not split off have one of the two upper bits set.
  static_assert(kMostPeers < 1 << 20);
  return static_cast<Id>(maker + 1) << 40 | place / kFalseSharingRange;
}

std::unique_ptr<Team> Team::at(World& world, const TeamShape& shape, std::uint64_t place, Id id) {
  auto team = std::unique_ptr<Team>(new Team(world, shape, id));
  team->open(place);
  return team;
}

std::unique_ptr<Team> Team::local(LocalTeams& teams, const TeamShape& shape) {
  return std::unique_ptr<Team>(new Team(teams.world(), shape, LocalTeams::key_of(shape), &teams));
}

Result<std::unique_ptr<Team>> Team::split(const char* what, const TeamShape& shape) {
  MEMSPAN_PASS(check_shape(shape, size()));
  const TeamShape part = TeamMembers::shape().part(shape);
  // On each node the first of the new members makes the area and reports its place. Words 0 to 2
  // are the shape, to catch callers that disagree, word 3 the place plus one, 0 for no space.
  const int first = first_near_member(world(), part);
  std::optional<std::uint64_t> made;
  if (first >= 0 && part.peer_of(first) == world().rank())
    made = TeamArea::make(world(), shape.size);
  const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t words[] = {number(shape.start), number(shape.stride), number(shape.size),
                                 made ? *made + 1 : 0};
  const SignatureField fields[] = {
      {"the start", words[0]}, {"the stride", words[1]}, {"the size", words[2]}};
  MEMSPAN_PASS(barrier(what, words, 4));
  Status agreed = compare_with_all(*this, fields);
  const auto nodes = TeamNodes::of(world(), part);
  for (int node = 0; agreed.is_ok() && node < (nodes ? nodes->count() : 1); ++node)
    if (word(shape.peer_of(nodes ? nodes->leader(node) : 0), 3) == 0)
      agreed = Status(Code::kOutOfMemory, "no room for another team");
  if (!agreed.is_ok()) {
    if (made) world().free_internal(*made);
    return agreed;
  }
  if (shape.member_of(index()) < 0) return std::unique_ptr<Team>();
  return at(world(), part, word(shape.peer_of(first), 3) - 1,
            id_of(part.peer_of(0), word(shape.peer_of(0), 3) - 1));
}

Result<std::unique_ptr<Team>> Team::split_mapped(const char* what) {
  std::vector<int> peers;
  for (int member = 0; member < size(); ++member)
    if (member == index() || world().route(peer_of(member)).is_direct())
      peers.push_back(peer_of(member));
  const auto number = static_cast<int>(peers.size());
  const int first = peers[0];
  std::optional<std::uint64_t> made;
  if (first == world().rank()) made = TeamArea::make(world(), number);
  // The first of each reports the place, plus one; 0 for no space.
  const std::uint64_t words[] = {made ? *made + 1 : 0, static_cast<std::uint64_t>(first)};
  MEMSPAN_PASS(barrier(what, words, 2));
  for (int member = 0; member < size(); ++member)
    if (static_cast<int>(word(member, 1)) == peer_of(member) && word(member, 0) == 0) {
      if (made) world().free_internal(*made);
      return Status(Code::kOutOfMemory, "no room for another team");
    }
  const std::uint64_t place = word(shape().member_of(first), 0) - 1;
  const TeamShape mapped = number == size() ? shape() : TeamShape::of(std::move(peers));
  return at(world(), mapped, place, id_of(first, place));
}

}  // namespace memspan::inline pgas
