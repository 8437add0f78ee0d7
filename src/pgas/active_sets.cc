// SPDX-License-Identifier: Apache-2.0
#include "pgas/active_sets.h"

#include <fmt/format.h>

#include "node/wait.h"
#include "pgas/atomic.h"

namespace memspan::pgas {
namespace {

// One set has one team: | 0 | 1 | start: 15 | stride: 16 | size: 16 |.
Team::Id id_of(const TeamShape& shape) {
  return Team::Id{1} << 62 | static_cast<Team::Id>(shape.start) << 32 |
         static_cast<Team::Id>(shape.stride) << 16 | static_cast<Team::Id>(shape.size);
}

constexpr std::uint64_t kNoRoom = std::uint64_t{1} << 62;

// The sync word begins with another value than 0 or the one that a member receives. Other libraries
// begin with -1.
Status not_initialized(std::uint64_t value) {
  return {Code::kInvalidArgument,
          fmt::format("pSync[0] is {}, and must be SHMEM_SYNC_VALUE, 0, before a collective; "
                      "a program that sets it was compiled with another library's shmem.h",
                      static_cast<std::int64_t>(value))};
}

}  // namespace

Team* ActiveSets::find(const TeamShape& shape) {
  MutexLock lock(mutex_);
  for (const auto& team : teams_)
    if (team->shape() == shape) return team.get();
  return nullptr;
}

Result<Team*> ActiveSets::find_or_make(const char* what, const TeamShape& shape, long* sync) {
  if (Team* found = find(shape)) return found;
  MEMSPAN_PASS(check_shape(shape, world_.size()));
  if (shape.member_of(world_.rank()) < 0)
    return Status(Code::kInvalidArgument,
                  fmt::format("PE {} is not in the active set of start {}, stride {}, size {}",
                              world_.rank(), shape.start, shape.stride, shape.size));
  // Not under the mutex: other threads' sets may have to be made first for this one to be.
  const Result<std::uint64_t> place = agree_on_place(what, shape, sync);
  if (place.code() == Code::kOutOfMemory) Team::tell_no_room(world_, shape, id_of(shape), 1);
  if (!place.is_ok()) return place.status().annotate("an active set");
  auto team = Team::at(world_, shape, *place, id_of(shape));
  Team* const made = team.get();
  MutexLock lock(mutex_);
  teams_.push_back(std::move(team));
  return made;
}

// On each node the first member there makes the area and reports its place to the others: the place
// plus one, or kNoRoom.
Result<std::uint64_t> ActiveSets::agree_on_place(const char* what, const TeamShape& shape,
                                                 long* sync) {
  static_assert(sizeof(long) == sizeof(std::uint64_t));
  auto* word = reinterpret_cast<std::uint64_t*>(sync);
  std::uint64_t told = kNoRoom;
  const int first = shape.peer_of(first_near_member(world_, shape));
  if (first == world_.rank()) {
    if (*word != 0) return not_initialized(*word);
    if (const auto place = Team::make_area(world_, shape.size)) told = *place + 1;
    const RouteTable& table = world_.routes();
    for (int member = 0; member < shape.size; ++member) {
      const int peer = shape.peer_of(member);
      if (peer == first || !world_.is_near(peer)) continue;
      const Route& route = table.route_of(word, peer);
      Status status = atomic<AtomicKind::kSet, std::uint64_t>(table, route, word, told, 0, nullptr);
      if (!status.is_ok()) return status;
    }
  } else {
    MEMSPAN_PASS(wait_for(
        world_.waiting(), WaitsFor::kData, what, Deadline::never(),
        [&] { return (told = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != 0; },
        Needs{[&] { return world_.waiting().is_gone(first) ? first : -1; },
              [&] { return first; }}));
    if (told > kNoRoom) return not_initialized(told);
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
  }
  if (told == kNoRoom) return Status(Code::kOutOfMemory, "no room for another active set");
  return told - 1;
}

}  // namespace memspan::pgas
