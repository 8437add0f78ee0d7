// SPDX-License-Identifier: Apache-2.0
#include "pgas/team_shrink.h"

#include "core/bytes.h"
#include "pgas/team.h"

namespace memspan {
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

}  // namespace

struct TeamShrink::Living {
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

TeamShrink::TeamShrink(Team& team) : team_(team), world_(team.world()) {}

std::vector<Team*> TeamShrink::teams() const {
  std::vector<Team*> all{&team_};
  for (const auto& attempt : attempts_) all.push_back(attempt.get());
  return all;
}

Status TeamShrink::propose(Living& living) {
  const auto members = static_cast<int>(living.peers.size());
  const auto place = world_.allocate_internal(living.room() + SyncArea::bytes_for(members));
  if (!place) return {Code::kOutOfMemory, "no room for another team"};
  if (living.id == 0) living.id = Team::id_of(world_.rank(), *place);
  std::byte* const made = world_.internal_area(world_.rank()) + *place;
  std::memset(static_cast<void*>(made + living.room()), 0, SyncArea::bytes_for(members));
  const std::string bytes = living.encode();
  std::memcpy(made, bytes.data(), bytes.size());
  // Counted after the look at the living. So a proposal may claim to know more than it does, and
  // then fails, but a member that knows as much as it does never waits for another.
  const std::uint32_t deaths = world_.segment().header().deaths.load(std::memory_order_acquire);
  for (Team* const team : teams())
    team->proposal().store(Proposal{deaths, world_.rank(), *place}.encode(),
                           std::memory_order_release);
  for (int member = 0; member < team_.size(); ++member)
    if (team_.is_alive(member) && team_.is_near(member))
      world_.route(team_.peer_of(member)).notify_sync();
  return Status::ok();
}

Status TeamShrink::propose_living() {
  Living living;
  for (int member = 0; member < team_.size(); ++member)
    if (team_.is_alive(member)) living.peers.push_back(team_.peer_of(member));
  MEMSPAN_PASS(propose(living));
  const std::string bytes = living.encode();
  const TeamNodes* const nodes = team_.nodes();
  for (int node = 0; nodes != nullptr && node < nodes->count(); ++node) {
    if (node == nodes->mine()) continue;
    for (const int member : nodes->members(node)) {
      if (!team_.is_alive(member)) continue;
      // If it dies now, its death ends what follows.
      for (const Team* const team : teams())
        (void)world_.messages().send(team_.peer_of(member),
                                     {MessageKind::kBarrier, team->id(), kProposal},
                                     std::as_bytes(std::span(bytes)));
      break;
    }
  }
  return Status::ok();
}

std::optional<TeamShrink::Living> TeamShrink::proposal_of(int maker) {
  for (const Team* const team : teams())
    while (const auto bytes =
               world_.messages().poll(maker, {MessageKind::kBarrier, team->id(), kProposal})) {
      auto living = Living::decode({reinterpret_cast<const char*>(bytes->data()), bytes->size()},
                                   team_.size());
      if (!living) continue;
      const auto& peers = living->peers;
      const bool can_be = std::all_of(peers.begin(), peers.end(), [this](int peer) {
        return peer >= 0 && peer < world_.size() && !world_.segment().peer(peer).is_dead();
      });
      if (can_be && std::count(peers.begin(), peers.end(), world_.rank()) != 0) return living;
    }
  return std::nullopt;
}

Result<std::unique_ptr<Team>> TeamShrink::run(const char* what) {
  MEMSPAN_PASS(team_.prepare(what));
  const auto deaths_now = [this] {
    return world_.segment().header().deaths.load(std::memory_order_acquire);
  };
  Proposal proposal;
  // A proposal that knows of so many deaths.
  const auto is_proposed = [&](std::uint32_t deaths) {
    for (const Team* const team : teams()) {
      proposal = Proposal::decode(team->proposal().load(std::memory_order_acquire));
      if (proposal.is_made && proposal.deaths >= deaths &&
          !world_.segment().peer(proposal.maker).is_dead())
        return true;
    }
    return false;
  };
  Status status;
  do {
    acknowledge_deaths(world_.waiting());
    const std::uint32_t deaths = deaths_now();
    int first = 0;
    while (!team_.is_alive(first)) ++first;
    int first_near = 0;
    while (!team_.is_near(first_near) || !team_.is_alive(first_near)) ++first_near;
    if (first == team_.index()) MEMSPAN_PASS(propose_living());
    std::optional<Living> told;
    status = wait_for(world_.waiting(), WaitsFor::kSync, what, Deadline::never(), [&] {
      if (first_near != team_.index() || first == team_.index()) return is_proposed(deaths);
      told = proposal_of(team_.peer_of(first));
      return told.has_value();
    });
    if (status.is_ok() && told) {
      MEMSPAN_PASS(propose(*told));
      if (!is_proposed(deaths)) status = {Code::kPeerLost, "another PE has died"};
    }
  } while (status.code() == Code::kPeerLost);
  MEMSPAN_PASS(status);
  // Its maker knew at most as many members.
  const auto* const told =
      reinterpret_cast<const char*>(world_.internal_area(proposal.maker) + proposal.place);
  const auto living = Living::decode(
      {told, Living::bytes_for(static_cast<std::size_t>(team_.size()))}, team_.size());
  if (!living) return Status(Code::kInternal, "a malformed proposal of a team");
  auto team =
      Team::at(world_, TeamShape::of(living->peers), proposal.place + living->room(), living->id);
  Status met = team->barrier(what);
  if (met.is_ok()) return team;
  if (met.code() == Code::kPeerLost)
    static_cast<void>(wait_for(world_.waiting(), WaitsFor::kSync, what,
                               Deadline::after(kNoticePatience),
                               [&] { return deaths_now() > proposal.deaths; }));
  attempts_.push_back(std::move(team));
  return met;
}

}  // namespace memspan
