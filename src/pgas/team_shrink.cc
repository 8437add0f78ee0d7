// SPDX-License-Identifier: Apache-2.0
#include "pgas/team_shrink.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/bytes.h"
#include "pgas/team.h"

namespace memspan::inline pgas {
namespace {

// The bits of SyncHeader::proposal: | 1 | deaths: 15 | maker: 16 | place / 128: 32 |
struct Proposal {
  std::uint32_t deaths = 0;  // that its maker knew of
  int maker = 0;             // a PE of this node
  std::uint64_t place = 0;   // of a Living in its internal area; the new team's area follows
  bool is_made = false;

  std::uint64_t encode() const {
    return std::uint64_t{1} << 63 | (std::uint64_t{deaths} & 0x7fff) << 48 |
           static_cast<std::uint64_t>(maker) << 32 | place / kFalseSharingRange;
  }
  static Proposal decode(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 48 & 0x7fff), static_cast<int>(word >> 32 & 0xffff),
            (word & 0xffff'ffff) * kFalseSharingRange, word >> 63 != 0};
  }
};
static_assert(kMostPeers <= 0x7fff);

// The sequence of its messages, which no barrier reaches.
constexpr std::uint64_t kProposal = ~std::uint64_t{0};

// A connection may break so long before the death of its peer is known.
constexpr Duration kNoticePatience = std::chrono::seconds(1);

// The contents of a proposal, before the new team's area.
struct Living {
  TeamMembers::Id id = 0;  // of the new team; 0: that of the area that is about to be made
  std::vector<int> peers;  // in the order of the old team

  static std::size_t bytes_for(std::size_t peers) {
    return sizeof(std::uint64_t) + (1 + peers) * sizeof(std::uint32_t);
  }
  // From the begin of this to the area.
  std::size_t room() const { return align_up(bytes_for(peers.size()), kFalseSharingRange); }
  std::string encode() const {
    ByteWriter out;
    out.u64(id);
    out.u32(static_cast<std::uint32_t>(peers.size()));
    for (const int peer : peers) out.u32(static_cast<std::uint32_t>(peer));
    return out.take();
  }
  // nullopt: there are not as many bytes as it needs, or too many peers.
  static std::optional<Living> decode(std::string_view bytes, int members) {
    ByteReader in(bytes);
    Living living{in.u64(), {}};
    const std::uint32_t count = in.u32();
    if (count < 1 || count > static_cast<std::uint32_t>(members)) return std::nullopt;
    for (std::uint32_t i = 0; i < count; ++i) living.peers.push_back(static_cast<int>(in.u32()));
    return in.is_ok() ? std::optional(std::move(living)) : std::nullopt;
  }
};

// The team and those of its living that could not meet, in which others may have succeeded.
using Teams = std::vector<Team*>;

Status propose(const Teams& teams, Living& living) {
  const Team& team = *teams[0];
  World& world = team.world();
  const auto members = static_cast<int>(living.peers.size());
  const auto place = world.allocate_internal(living.room() + SyncArea::bytes_for(members));
  if (!place) return {Code::kOutOfMemory, "no room for another team"};
  if (living.id == 0) living.id = Team::id_of(world.rank(), *place);
  std::byte* const made = world.internal_area(world.rank()) + *place;
  std::memset(static_cast<void*>(made + living.room()), 0, SyncArea::bytes_for(members));
  const std::string bytes = living.encode();
  std::memcpy(made, bytes.data(), bytes.size());
  // Counted after the look at the living. So a proposal may claim to know more than it does, and
  // then fails, but a member that knows as much as it does never waits for another.
  const std::uint32_t deaths = world.segment().header().deaths.load(std::memory_order_acquire);
  for (Team* const each : teams)
    each->proposal().store(Proposal{deaths, world.rank(), *place}.encode(),
                           std::memory_order_release);
  for (int member = 0; member < team.size(); ++member)
    if (team.is_alive(member) && team.is_near(member))
      world.route(team.peer_of(member)).notify_sync();
  return Status::ok();
}

Status propose_living(const Teams& teams) {
  const Team& team = *teams[0];
  World& world = team.world();
  Living living;
  for (int member = 0; member < team.size(); ++member)
    if (team.is_alive(member)) living.peers.push_back(team.peer_of(member));
  MEMSPAN_PASS(propose(teams, living));
  const std::string bytes = living.encode();
  const TeamNodes* const nodes = team.nodes();
  for (int node = 0; nodes != nullptr && node < nodes->count(); ++node) {
    if (node == nodes->mine()) continue;
    for (const int member : nodes->members(node)) {
      if (!team.is_alive(member)) continue;
      // If it dies now, its death ends what follows.
      for (const Team* const each : teams)
        (void)world.messages().send(team.peer_of(member),
                                    {MessageKind::kBarrier, each->id(), kProposal},
                                    std::as_bytes(std::span(bytes)));
      break;
    }
  }
  return Status::ok();
}

// The proposal that the PE `maker` on another node has sent to this one, if it can hold.
std::optional<Living> proposal_of(const Teams& teams, int maker) {
  const Team& team = *teams[0];
  World& world = team.world();
  for (const Team* const each : teams)
    while (const auto bytes =
               world.messages().poll(maker, {MessageKind::kBarrier, each->id(), kProposal})) {
      auto living = Living::decode({reinterpret_cast<const char*>(bytes->data()), bytes->size()},
                                   team.size());
      if (!living) continue;
      const auto& peers = living->peers;
      const bool can_be = std::all_of(peers.begin(), peers.end(), [&](int peer) {
        return peer >= 0 && peer < world.size() && !world.segment().peer(peer).is_dead();
      });
      if (can_be && std::count(peers.begin(), peers.end(), world.rank()) != 0) return living;
    }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Team>> TeamShrink::run(Team& team, const char* what) {
  World& world = team.world();
  Teams teams{&team};
  for (const auto& attempt : attempts_) teams.push_back(attempt.get());
  MEMSPAN_PASS(team.prepare(what));
  const auto deaths_now = [&] {
    return world.segment().header().deaths.load(std::memory_order_acquire);
  };
  Proposal proposal;
  // A proposal that knows of so many deaths.
  const auto is_proposed = [&](std::uint32_t deaths) {
    for (const Team* const each : teams) {
      proposal = Proposal::decode(each->proposal().load(std::memory_order_acquire));
      if (proposal.is_made && proposal.deaths >= deaths &&
          !world.segment().peer(proposal.maker).is_dead())
        return true;
    }
    return false;
  };
  Status status;
  do {
    acknowledge_deaths(world.waiting());
    const std::uint32_t deaths = deaths_now();
    int first = 0;
    while (!team.is_alive(first)) ++first;
    int first_near = 0;
    while (!team.is_near(first_near) || !team.is_alive(first_near)) ++first_near;
    if (first == team.index()) MEMSPAN_PASS(propose_living(teams));
    std::optional<Living> told;
    status = wait_for(world.waiting(), WaitsFor::kSync, what, Deadline::never(), [&] {
      if (first_near != team.index() || first == team.index()) return is_proposed(deaths);
      told = proposal_of(teams, team.peer_of(first));
      return told.has_value();
    });
    if (status.is_ok() && told) {
      MEMSPAN_PASS(propose(teams, *told));
      if (!is_proposed(deaths)) status = {Code::kPeerLost, "another PE has died"};
    }
  } while (status.code() == Code::kPeerLost);
  MEMSPAN_PASS(status);
  // Its maker knew at most as many members.
  const auto* const told =
      reinterpret_cast<const char*>(world.internal_area(proposal.maker) + proposal.place);
  const auto living =
      Living::decode({told, Living::bytes_for(static_cast<std::size_t>(team.size()))}, team.size());
  if (!living) return Status(Code::kInternal, "a malformed proposal of a team");
  auto made =
      Team::at(world, TeamShape::of(living->peers), proposal.place + living->room(), living->id);
  // If one has died since, living members may wait for the next proposal instead of this barrier.
  made->need_all_alive(true);
  Status met = made->barrier(what);
  made->need_all_alive(false);
  if (met.is_ok()) return made;
  if (met.code() == Code::kPeerLost)
    static_cast<void>(wait_for(world.waiting(), WaitsFor::kSync, what,
                               Deadline::after(kNoticePatience),
                               [&] { return deaths_now() > proposal.deaths; }));
  attempts_.push_back(std::move(made));
  return met;
}

}  // namespace memspan::inline pgas
