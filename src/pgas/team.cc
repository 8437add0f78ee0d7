// SPDX-License-Identifier: Apache-2.0
#include "pgas/team.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "core/check.h"
#include "world/wait.h"

namespace memspan {
namespace {

// Up to this many members on as many cores, everybody reads everybody's flag: one line's way.
// Beyond, or when cores are shared, one counter and one line that all look at.
constexpr int kMostByFlags = 8;

// What SyncHeader::proposal says: | 1 | deaths: 15 | maker: 16 | place / 128: 32 |
struct Proposal {
  std::uint32_t deaths = 0;  // that its maker knew of
  int maker = 0;             // a member of the old team, the first of the new
  std::uint64_t place = 0;   // of the new team's area, and after it a byte for each old member
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
static_assert(kMostPeersPerHost <= 0x7fff);

// The world team's area stands at the start of rank 0's internal area, known to all unasked.
constexpr std::uint64_t kWorldAreaOffset = 0;

}  // namespace

Status check_shape(const TeamShape& shape, int parent_size) {
  auto in_parent = [&](std::int64_t member) { return member >= 0 && member < parent_size; };
  std::int64_t last = shape.start + (static_cast<std::int64_t>(shape.size) - 1) * shape.stride;
  if (shape.size >= 1 && (shape.stride != 0 || shape.size == 1) && in_parent(shape.start) &&
      in_parent(last))
    return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("start {}, stride {}, size {} does not lie in a team of {}", shape.start,
                      shape.stride, shape.size, parent_size)};
}

std::unique_ptr<Team> Team::world(World& world) {
  // Rank 0 hands out none of it later.
  if (world.rank() == 0) {
    const auto offset = world.allocate_internal(SyncArea::bytes_for(world.size()));
    MEMSPAN_CHECK(offset == kWorldAreaOffset);
  }
  return at(world, TeamShape{0, 1, world.size()}, kWorldAreaOffset);
}

std::optional<std::uint64_t> Team::make_area(World& world, int members) {
  const std::uint64_t bytes = SyncArea::bytes_for(members);
  const auto place = world.allocate_internal(bytes);
  if (place) std::memset(static_cast<void*>(world.internal_area(world.rank()) + *place), 0, bytes);
  return place;
}

std::unique_ptr<Team> Team::at(World& world, const TeamShape& shape, std::uint64_t place) {
  return std::unique_ptr<Team>(new Team(world, shape, place));
}

std::unique_ptr<Team> Team::local(LocalTeams& teams, const TeamShape& shape) {
  auto team = std::unique_ptr<Team>(new Team(teams.world(), shape));
  team->local_teams_ = &teams;
  return team;
}

Team::Team(World& world, const TeamShape& shape)
    : world_(world),
      shape_(shape),
      index_(shape.member_of(world.rank())),
      by_counter_(world.board().header().oversubscribed != 0 || shape.size > kMostByFlags) {}

Team::Team(World& world, const TeamShape& shape, std::uint64_t place) : Team(world, shape) {
  move_to(place);
}

void Team::move_to(std::uint64_t place) {
  area_ = SyncArea(world_.internal_area(shape_.peer_of(0)) + place, shape_.size);
  area_offset_ = place;
  catch_up();
}

// The sequence goes on from what the area shows: a process may leave a job and join it again, and
// have several local teams of the same members.
void Team::catch_up() {
  sequence_ =
      std::max(area_.line(index_, 0).sequence.load(), area_.line(index_, 1).sequence.load());
}

Status Team::prepare_local(const char* what) {
  MEMSPAN_PASS(broken_);
  if (entry_ != nullptr) {
    catch_up();
    return Status::ok();
  }
  MEMSPAN_TRY_ASSIGN(entry_, local_teams_->attach(what, shape_), "making the team");
  move_to(entry_->place.load(std::memory_order_relaxed));
  return Status::ok();
}

Status Team::meet(const char* what) {
  return meet(what, nullptr, 0);
}

Status Team::meet(const char* what, const std::uint64_t* words, int count) {
  if (!broken_.is_ok()) [[unlikely]]
    return broken_;
  if (local_teams_ != nullptr) [[unlikely]]
    MEMSPAN_PASS(prepare_local(what));
  std::uint64_t sequence = sequence_ + 1;
  SyncSlot::Line& mine = area_.line(index_, sequence);
  for (int i = 0; i < count; ++i) mine.words[i].store(words[i], std::memory_order_relaxed);
  // Pairs with the acquire loads in meet_by_flags(); by counter the fetch_add does it.
  mine.sequence.store(sequence, std::memory_order_release);
  if (shape_.size > 1) {
    Status status = by_counter_ ? meet_by_counter(what, sequence) : meet_by_flags(what, sequence);
    if (!status.is_ok()) return broken_ = explain(status, sequence);
  }
  sequence_ = sequence;
  return Status::ok();
}

Status Team::meet_alike(const char* what, const Alike& mine, const std::uint64_t* words,
                        int count) {
  if (!broken_.is_ok()) [[unlikely]]
    return broken_;
  const std::uint64_t sequence = sequence_ + 1;
  const std::uint64_t alike = mine.encode(sequence);
  area_.line(index_, sequence).words[kAlikeWord].store(alike, std::memory_order_relaxed);
  MEMSPAN_PASS(meet(what, words, count));
  // One look each finds a difference in any team: not all can have what their next one has.
  const int next = index_ + 1 < shape_.size ? index_ + 1 : 0;
  if (word(next, kAlikeWord) == alike) [[likely]]
    return Status::ok();
  return explain_difference(alike, next);
}

Status Team::explain_difference(std::uint64_t mine, int member) const {
  const std::uint64_t other = word(member, kAlikeWord);
  const int peer = peer_of(member);
  if (mine >> 54 != other >> 54)
    return {Code::kInvalidArgument,
            fmt::format("PE {} is in another call meanwhile; all members of a team make the same "
                        "calls in the same order",
                        peer)};
  const std::uint64_t roots[] = {mine >> 40 & 0x3fff, other >> 40 & 0x3fff};
  if (roots[0] != roots[1])
    return {Code::kInvalidArgument,
            fmt::format("PE_root is {} here and {} on PE {}; all members of a team give the same",
                        roots[0], roots[1], peer)};
  return {Code::kInvalidArgument,
          fmt::format("the elements have {} bytes here and {} on PE {}; all members of a team give "
                      "as many elements of the same size",
                      mine & 0xff'ffff'ffff, other & 0xff'ffff'ffff, peer)};
}

Status Team::explain(const Status& status, std::uint64_t sequence) const {
  if (status.code() != Code::kTimeout) return status;
  std::string missing;
  for (int member = 0; member < shape_.size; ++member)
    if (area_.line(member, sequence).sequence.load(std::memory_order_acquire) < sequence)
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", peer_of(member));
  return status.annotate(fmt::format("PE {} did not come", missing));
}

Status Team::meet_by_flags(const char* what, std::uint64_t sequence) {
  for (int member = 0; member < shape_.size; ++member)
    if (member != index_) world_.route(shape_.peer_of(member)).notify_meeting();
  for (int i = 1; i < shape_.size; ++i) {
    int member = index_ + i < shape_.size ? index_ + i : index_ + i - shape_.size;
    const SyncSlot::Line& line = area_.line(member, sequence);
    Status status = wait_for(
        world_.waiting(), WaitsFor::kMeeting, what, Deadline::never(),
        [&] { return line.sequence.load(std::memory_order_acquire) >= sequence; },
        [&] { return lost_by_flags(sequence); });
    if (!status.is_ok()) return status;
  }
  return Status::ok();
}

Status Team::meet_by_counter(const char* what, std::uint64_t sequence) {
  SyncHeader& header = area_.header();
  auto members = static_cast<std::uint64_t>(shape_.size);
  // acq_rel: who comes last has seen what all before it stored, and passes it on by `released`.
  if (header.arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 == members * sequence) {
    header.released.store(sequence, std::memory_order_release);
    // As in Route::notify().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (world_.board().header().anybody_armed.load(std::memory_order_relaxed) != 0)
      world_.board().ring_all();
    return Status::ok();
  }
  return wait_for(
      world_.waiting(), WaitsFor::kMeeting, what, Deadline::never(),
      [&] { return header.released.load(std::memory_order_acquire) >= sequence; },
      [&] { return lost_by_counter(sequence); });
}

int Team::lost_by_flags(std::uint64_t sequence) const {
  // Gone first, then what it left behind: it leaves nothing more.
  for (int member = 0; member < size(); ++member)
    if (world_.waiting().is_gone(peer_of(member)) &&
        area_.line(member, sequence).sequence.load(std::memory_order_acquire) < sequence)
      return peer_of(member);
  return -1;
}

int Team::lost_by_counter(std::uint64_t sequence) const {
  if (const int lost = lost_by_flags(sequence); lost >= 0) return lost;
  // All have left their flags; one may have died before it was counted.
  int dead = -1;
  for (int member = 0; member < size(); ++member) {
    if (!is_alive(member)) dead = peer_of(member);
    if (area_.line(member, sequence).sequence.load(std::memory_order_acquire) < sequence) return -1;
  }
  const auto due = static_cast<std::uint64_t>(size()) * sequence;
  return area_.header().arrivals.load(std::memory_order_acquire) < due ? dead : -1;
}

Result<std::unique_ptr<Team>> Team::split(const char* what, const TeamShape& shape) {
  MEMSPAN_PASS(check_shape(shape, shape_.size));
  // The first member makes the area and tells the others where: words 0 to 2 the shape, to catch
  // callers that disagree, word 3 the place plus one, 0 when there was no room.
  std::optional<std::uint64_t> made;
  if (shape.start == index_) made = make_area(world_, shape.size);
  const std::uint64_t words[] = {static_cast<std::uint64_t>(shape.start),
                                 static_cast<std::uint64_t>(shape.stride),
                                 static_cast<std::uint64_t>(shape.size), made ? *made + 1 : 0};
  MEMSPAN_PASS(meet(what, words, 4));
  Status agreed = Status::ok();
  for (int member = 0; member < shape_.size && agreed.is_ok(); ++member)
    if (word(member, 0) != words[0] || word(member, 1) != words[1] || word(member, 2) != words[2])
      agreed = Status(
          Code::kInvalidArgument,
          fmt::format("member {} of the parent team gave another start, stride or size", member));
  std::uint64_t place = word(shape.start, 3);
  if (agreed.is_ok() && place == 0) agreed = Status(Code::kOutOfMemory, "no room for another team");
  if (!agreed.is_ok()) {
    if (made) world_.free_internal(*made);
    return agreed;
  }
  if (shape.member_of(index_) < 0) return std::unique_ptr<Team>();
  return at(world_, shape_.part(shape), place - 1);
}

bool Team::is_alive(int member) const {
  // Its number among the deaths, which comes after the count of all: who sees it has seen that.
  return world_.board().peer(peer_of(member)).death.load(std::memory_order_acquire) == 0;
}

Status Team::propose_living() {
  const auto members = static_cast<std::uint64_t>(size());
  const auto place = world_.allocate_internal(SyncArea::bytes_for(size()) + members);
  if (!place) return {Code::kOutOfMemory, "no room for another team"};
  std::byte* const area = world_.internal_area(world_.rank()) + *place;
  std::memset(static_cast<void*>(area), 0, SyncArea::bytes_for(size()));
  for (int member = 0; member < size(); ++member)
    area[SyncArea::bytes_for(size()) + static_cast<std::size_t>(member)] =
        std::byte{is_alive(member) ? std::uint8_t{1} : std::uint8_t{0}};
  // Counted after the look at who lives: a proposal may say too much of what it knows, and then
  // fails, but who knows as much as it does never waits for another.
  const std::uint32_t deaths = world_.board().header().deaths.load(std::memory_order_acquire);
  area_.header().proposal.store(Proposal{deaths, index_, *place}.encode(),
                                std::memory_order_release);
  for (int member = 0; member < size(); ++member)
    if (is_alive(member)) world_.route(peer_of(member)).notify_meeting();
  return Status::ok();
}

// Whoever is the first of the living, as it sees them, proposes. A proposal holds for those who
// know of no more deaths than it does and while its maker lives; whoever took one that a death has
// overtaken fails to meet in it, and calls again with more deaths to ask for.
Result<std::unique_ptr<Team>> Team::shrink(const char* what) {
  MEMSPAN_PASS(prepare(what));
  Proposal proposal;
  Status status;
  do {
    acknowledge_deaths(world_.waiting());
    const std::uint32_t deaths = world_.board().header().deaths.load(std::memory_order_acquire);
    int first = 0;
    while (!is_alive(first)) ++first;
    if (first == index_) MEMSPAN_PASS(propose_living());
    status = wait_for(world_.waiting(), WaitsFor::kMeeting, what, Deadline::never(), [&] {
      proposal = Proposal::decode(area_.header().proposal.load(std::memory_order_acquire));
      return proposal.is_made && proposal.deaths >= deaths && is_alive(proposal.maker);
    });
  } while (status.code() == Code::kPeerLost);
  MEMSPAN_PASS(status);
  const std::byte* const area = world_.internal_area(peer_of(proposal.maker)) + proposal.place;
  std::vector<int> living;
  for (int member = 0; member < size(); ++member)
    if (area[SyncArea::bytes_for(size()) + static_cast<std::size_t>(member)] != std::byte{0})
      living.push_back(peer_of(member));
  auto team = at(world_, TeamShape::of(std::move(living)), proposal.place);
  MEMSPAN_PASS(team->meet(what));
  return team;
}

Status Team::disband(const char* what) {
  if (local_teams_ != nullptr) {
    if (entry_ != nullptr) LocalTeams::detach(*entry_);
    return Status::ok();
  }
  MEMSPAN_PASS(meet(what));
  SyncHeader& header = area_.header();
  header.departed.fetch_add(1, std::memory_order_acq_rel);
  if (index_ != 0) return Status::ok();
  // Only when the last member has taken its last look may the area serve another team.
  auto members = static_cast<std::uint64_t>(shape_.size);
  MEMSPAN_PASS(wait_for(
      world_.waiting(), WaitsFor::kMeeting, what, Deadline::never(),
      [&] { return header.departed.load(std::memory_order_acquire) == members; },
      [&] {
        // Who has begun to leave has counted itself before.
        for (int member = 0; member < size(); ++member)
          if (!is_alive(member)) return peer_of(member);
        return -1;
      }));
  world_.free_internal(area_offset_);
  return Status::ok();
}

}  // namespace memspan
