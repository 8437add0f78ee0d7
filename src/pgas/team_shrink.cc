// SPDX-License-Identifier: Apache-2.0
// A team of the living members. The first of them, as it sees them, proposes the members and makes
// the new team's area. On several nodes it sends that to the first living member of each other
// node, which proposes the same to its node with an area of its own.
//
// A proposal holds for members that know of no more deaths than it does, and while its maker lives.
// A member that took one that a death has overtaken fails in its first barrier, and calls again
// with more deaths to ask for.
//
// If a process dies in that barrier, it may succeed at some members and fail at others. The former
// then shrink the new team, the latter call again for the old one. So these keep the new team,
// propose in both, and take proposals of both. A member that has not taken the proposal looks only
// at the old team, but then the barrier has succeeded nowhere.

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

bool is_alive_peer(const World& world, int peer) {
  return world.segment().peer(peer).death.load(std::memory_order_acquire) == 0;
}

}  // namespace

struct Team::Living {
  Id id = 0;               // of the new team; 0: that of the area that is about to be made
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

std::vector<Team*> Team::shrinking() {
  std::vector<Team*> teams{this};
  for (const auto& attempt : attempts_) teams.push_back(attempt.get());
  return teams;
}

Status Team::propose(Living& living) {
  const auto members = static_cast<int>(living.peers.size());
  const auto place = world().allocate_internal(living.room() + SyncArea::bytes_for(members));
  if (!place) return {Code::kOutOfMemory, "no room for another team"};
  if (living.id == 0) living.id = id_of(world().rank(), *place);
  std::byte* const made = world().internal_area(world().rank()) + *place;
  std::memset(static_cast<void*>(made + living.room()), 0, SyncArea::bytes_for(members));
  const std::string bytes = living.encode();
  std::memcpy(made, bytes.data(), bytes.size());
  // Counted after the look at the living. So a proposal may claim to know more than it does, and
  // then fails, but a member that knows as much as it does never waits for another.
  const std::uint32_t deaths = world().segment().header().deaths.load(std::memory_order_acquire);
  for (Team* const team : shrinking())
    team->area_.header().proposal.store(Proposal{deaths, world().rank(), *place}.encode(),
                                        std::memory_order_release);
  for (int member = 0; member < size(); ++member)
    if (is_alive(member) && is_near(member)) world().route(peer_of(member)).notify_sync();
  return Status::ok();
}

Status Team::propose_living() {
  Living living;
  for (int member = 0; member < size(); ++member)
    if (is_alive(member)) living.peers.push_back(peer_of(member));
  MEMSPAN_PASS(propose(living));
  const std::string bytes = living.encode();
  for (int node = 0; nodes() && node < nodes()->count(); ++node) {
    if (node == nodes()->mine()) continue;
    for (const int member : nodes()->members(node)) {
      if (!is_alive(member)) continue;
      // If it dies now, its death ends what follows.
      for (const Team* const team : shrinking())
        (void)world().messages().send(peer_of(member),
                                      {MessageKind::kBarrier, team->id(), kProposal},
                                      std::as_bytes(std::span(bytes)));
      break;
    }
  }
  return Status::ok();
}

// The proposal that the PE `maker` on another node has sent to this one, if it can hold.
std::optional<Team::Living> Team::proposal_of(int maker) {
  for (const Team* const team : shrinking())
    while (const auto bytes =
               world().messages().poll(maker, {MessageKind::kBarrier, team->id(), kProposal})) {
      auto living =
          Living::decode({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, size());
      if (!living) continue;
      const auto& peers = living->peers;
      const bool can_be = std::all_of(peers.begin(), peers.end(), [this](int peer) {
        return peer >= 0 && peer < world().size() && is_alive_peer(world(), peer);
      });
      if (can_be && std::count(peers.begin(), peers.end(), world().rank()) != 0) return living;
    }
  return std::nullopt;
}

Result<std::unique_ptr<Team>> Team::shrink(const char* what) {
  MEMSPAN_PASS(prepare(what));
  const auto deaths_now = [this] {
    return world().segment().header().deaths.load(std::memory_order_acquire);
  };
  Proposal proposal;
  // A proposal that knows of so many deaths.
  const auto is_proposed = [&](std::uint32_t deaths) {
    for (const Team* const team : shrinking()) {
      proposal = Proposal::decode(team->area_.header().proposal.load(std::memory_order_acquire));
      if (proposal.is_made && proposal.deaths >= deaths && is_alive_peer(world(), proposal.maker))
        return true;
    }
    return false;
  };
  Status status;
  do {
    acknowledge_deaths(world().waiting());
    const std::uint32_t deaths = deaths_now();
    int first = 0;
    while (!is_alive(first)) ++first;
    int first_near = 0;
    while (!is_near(first_near) || !is_alive(first_near)) ++first_near;
    if (first == index()) MEMSPAN_PASS(propose_living());
    std::optional<Living> told;
    status = wait_for(world().waiting(), WaitsFor::kSync, what, Deadline::never(), [&] {
      if (first_near != index() || first == index()) return is_proposed(deaths);
      told = proposal_of(peer_of(first));
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
      reinterpret_cast<const char*>(world().internal_area(proposal.maker) + proposal.place);
  const auto living =
      Living::decode({told, Living::bytes_for(static_cast<std::size_t>(size()))}, size());
  if (!living) return Status(Code::kInternal, "a malformed proposal of a team");
  auto team =
      at(world(), TeamShape::of(living->peers), proposal.place + living->room(), living->id);
  Status met = team->barrier(what);
  if (met.is_ok()) return team;
  if (met.code() == Code::kPeerLost)
    static_cast<void>(wait_for(world().waiting(), WaitsFor::kSync, what,
                               Deadline::after(kNoticePatience),
                               [&] { return deaths_now() > proposal.deaths; }));
  attempts_.push_back(std::move(team));
  return met;
}

}  // namespace memspan
