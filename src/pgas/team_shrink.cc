// SPDX-License-Identifier: Apache-2.0
// A team of the living members. The first of them, as it sees them, proposes the members and makes
// the new team's area. On several nodes it sends that to the first living member of each other
// node, which proposes the same to its node with an area of its own.
//
// A proposal holds for members that know of no more deaths than it does, and while its maker lives.
// A member that took one that a death has overtaken fails in its first barrier, and calls again
// with more deaths to ask for.
#include <cstring>
#include <utility>
#include <vector>

#include "node/wait.h"
#include "pgas/team.h"

namespace memspan {
namespace {

// The bits of SyncHeader::proposal: | 1 | deaths: 15 | maker: 16 | place / 128: 32 |
struct Proposal {
  std::uint32_t deaths = 0;  // that its maker knew of
  int maker = 0;             // a member of the old team, on this node
  std::uint64_t place = 0;   // of the new team's area in its internal area; a Living follows
  bool is_made = true;

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

}  // namespace

struct Team::Living {
  Id id = 0;                        // of the new team; 0: that of the area that is about to be made
  std::vector<std::uint8_t> lives;  // by old member

  std::vector<std::byte> encode() const {
    std::vector<std::byte> bytes(sizeof id + lives.size());
    std::memcpy(bytes.data(), &id, sizeof id);
    std::memcpy(bytes.data() + sizeof id, lives.data(), lives.size());
    return bytes;
  }
  static Living decode(const std::byte* bytes, std::size_t members) {
    Living living;
    std::memcpy(&living.id, bytes, sizeof living.id);
    living.lives.resize(members);
    std::memcpy(living.lives.data(), bytes + sizeof living.id, members);
    return living;
  }
};

bool Team::is_alive(int member) const {
  // Its number among the deaths, which is set after the count of all: the number implies the count.
  return world_.segment().peer(peer_of(member)).death.load(std::memory_order_acquire) == 0;
}

Status Team::propose(Living& living) {
  const auto place = world_.allocate_internal(SyncArea::bytes_for(size()) + sizeof living.id +
                                              living.lives.size());
  if (!place) return {Code::kOutOfMemory, "no room for another team"};
  if (living.id == 0) living.id = id_of(world_.rank(), *place);
  std::byte* const area = world_.internal_area(world_.rank()) + *place;
  std::memset(static_cast<void*>(area), 0, SyncArea::bytes_for(size()));
  const std::vector<std::byte> bytes = living.encode();
  std::memcpy(area + SyncArea::bytes_for(size()), bytes.data(), bytes.size());
  // Counted after the look at the living. So a proposal may claim to know more than it does, and
  // then fails, but a member that knows as much as it does never waits for another.
  const std::uint32_t deaths = world_.segment().header().deaths.load(std::memory_order_acquire);
  area_.header().proposal.store(Proposal{deaths, index_, *place}.encode(),
                                std::memory_order_release);
  for (int member = 0; member < size(); ++member)
    if (is_alive(member) && world_.is_near(peer_of(member)))
      world_.route(peer_of(member)).notify_sync();
  return Status::ok();
}

Status Team::propose_living() {
  Living living;
  for (int member = 0; member < size(); ++member) living.lives.push_back(is_alive(member) ? 1 : 0);
  MEMSPAN_PASS(propose(living));
  const std::vector<std::byte> bytes = living.encode();
  for (int node = 0; nodes_ && node < nodes_->count(); ++node) {
    if (node == nodes_->mine()) continue;
    for (const int member : nodes_->members(node)) {
      if (living.lives[static_cast<std::size_t>(member)] == 0) continue;
      // If it dies now, its death ends what follows.
      (void)world_.messages().send(peer_of(member), {MessageKind::kBarrier, id_, kProposal}, bytes);
      break;
    }
  }
  return Status::ok();
}

// The proposal that member `maker` on another node has sent to this one, if it can hold.
std::optional<Team::Living> Team::proposal_of(int maker) {
  const auto members = static_cast<std::size_t>(size());
  while (auto bytes =
             world_.messages().poll(peer_of(maker), {MessageKind::kBarrier, id_, kProposal})) {
    if (bytes->size() != sizeof(Id) + members) continue;
    Living living = Living::decode(bytes->data(), members);
    bool can_be = living.lives[static_cast<std::size_t>(index_)] != 0;
    for (std::size_t member = 0; member < members; ++member)
      can_be = can_be && (living.lives[member] == 0 || is_alive(static_cast<int>(member)));
    if (can_be) return living;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Team>> Team::shrink(const char* what) {
  MEMSPAN_PASS(prepare(what));
  const auto proposed = [this] {
    return Proposal::decode(area_.header().proposal.load(std::memory_order_acquire));
  };
  Proposal proposal;
  Status status;
  do {
    acknowledge_deaths(world_.waiting());
    const std::uint32_t deaths = world_.segment().header().deaths.load(std::memory_order_acquire);
    int first = 0;
    while (!is_alive(first)) ++first;
    int first_near = 0;
    while (!world_.is_near(peer_of(first_near)) || !is_alive(first_near)) ++first_near;
    std::optional<Living> told;
    if (first == index_) MEMSPAN_PASS(propose_living());
    status = wait_for(world_.waiting(), WaitsFor::kSync, what, Deadline::never(), [&] {
      if (first_near == index_ && first != index_) {
        told = proposal_of(first);
        return told.has_value();
      }
      proposal = proposed();
      return proposal.is_made && proposal.deaths >= deaths && is_alive(proposal.maker);
    });
    if (status.is_ok() && told) {
      MEMSPAN_PASS(propose(*told));
      proposal = proposed();
    }
  } while (status.code() == Code::kPeerLost);
  MEMSPAN_PASS(status);
  const Living living = Living::decode(
      world_.internal_area(peer_of(proposal.maker)) + proposal.place + SyncArea::bytes_for(size()),
      static_cast<std::size_t>(size()));
  std::vector<int> peers;
  for (int member = 0; member < size(); ++member)
    if (living.lives[static_cast<std::size_t>(member)] != 0) peers.push_back(peer_of(member));
  auto team = at(world_, TeamShape::of(std::move(peers)), proposal.place, living.id);
  MEMSPAN_PASS(team->barrier(what));
  return team;
}

}  // namespace memspan
