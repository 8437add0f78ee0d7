// SPDX-License-Identifier: Apache-2.0
#include "pgas/local_teams.h"

#include <fmt/format.h>

#include "pgas/node_barrier.h"
#include "pgas/team.h"

namespace memspan::inline pgas {
namespace {

std::uint64_t directory_place(const World& world, int peer) {
  // Only a node's leader has something before it: the area of the world team.
  if (peer != world.nodes().leader_of(world.nodes().node_of(peer))) return 0;
  return align_up(SyncArea::bytes_for(world.size()), kFalseSharingRange);
}

// Distinguishes the key of an active set from that of another team of the same members.
constexpr std::uint64_t kActiveSet = std::uint64_t{1} << 61;

}  // namespace

// | 1 | list: 1 | start: 15 | stride + 2^15: 16 | size: 16 |, or a hash of the list.
std::uint64_t LocalTeams::key_of(const TeamShape& shape) {
  static_assert(kMostPeers < 1 << 15);
  constexpr std::uint64_t kUsed = std::uint64_t{1} << 63;
  constexpr std::uint64_t kList = std::uint64_t{1} << 62;
  const auto size = static_cast<std::uint64_t>(shape.size);
  if (shape.list == nullptr) {
    // The stride of one member says nothing.
    const int stride = shape.size == 1 ? 0 : shape.stride;
    return kUsed | static_cast<std::uint64_t>(shape.start) << 32 |
           static_cast<std::uint64_t>(stride + (1 << 15)) << 16 | size;
  }
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const int peer : *shape.list)
    hash = (hash ^ static_cast<std::uint64_t>(peer)) * 0x100000001b3;
  return kUsed | kList | hash;
}

LocalTeams::LocalTeams(World& world) : world_(world) {
  const auto place = world.allocate_internal(sizeof(Directory));
  MEMSPAN_CHECK(place == directory_place(world, world.rank()));
  // A process may join a job again.
  Directory& mine = directory(world.rank());
  mine.count.store(0, std::memory_order_relaxed);
  mine.is_full.store(0, std::memory_order_relaxed);
}

LocalTeams::~LocalTeams() = default;

LocalTeams::Directory& LocalTeams::directory(int peer) const {
  return *reinterpret_cast<Directory*>(world_.internal_area(peer) + directory_place(world_, peer));
}

Result<LocalTeams::Entry*> LocalTeams::attach(const char* what, const TeamShape& shape,
                                              std::uint64_t key) {
  const int first = shape.peer_of(first_near_member(world_, shape));
  Directory& there = directory(first);
  Entry* found = nullptr;
  if (first == world_.rank()) {
    std::uint64_t failed = 0;
    {
      MutexLock lock(mutex_);
      found = attach_to(there, key);
      if (found == nullptr) found = make(shape, key);
      // Members on other nodes, whose area stays, also count the barrier that fails.
      if (found == nullptr) failed = ++pasts_[key].last_barrier;
    }
    if (found == nullptr)
      fail_among_nodes(TeamMembers(world_, shape, key), failed, Code::kOutOfMemory, -1);
  } else {
    MEMSPAN_TRY(
        wait_for(
            world_.waiting(), WaitsFor::kSync, what, Deadline::never(),
            [&] {
              // Loaded before the look at the entries: once it is set, none is made.
              const bool is_full = there.is_full.load(std::memory_order_acquire) != 0;
              found = attach_to(there, key);
              return found != nullptr || is_full;
            },
            Needs{[&] { return world_.waiting().is_gone(first) ? first : -1; },
                  [&] { return first; }}),
        fmt::format("PE {}, the first member of the team on this node, did not come", first));
  }
  if (found != nullptr) return found;
  return Status(
      Code::kOutOfMemory,
      fmt::format("PE {}, the first member of the team on this node, has no room for another",
                  first));
}

Result<Team*> LocalTeams::active_set(const char* what, const TeamShape& shape, const long* sync) {
  {
    MutexLock lock(mutex_);
    for (const auto& team : active_sets_)
      if (team->shape() == shape) return team.get();
  }
  MEMSPAN_PASS(check_shape(shape, world_.size()));
  if (shape.member_of(world_.rank()) < 0)
    return Status(Code::kInvalidArgument,
                  fmt::format("PE {} is not in the active set of start {}, stride {}, size {}",
                              world_.rank(), shape.start, shape.stride, shape.size));
  // Other libraries begin with -1.
  if (*sync != 0)
    return Status(
        Code::kInvalidArgument,
        fmt::format("pSync[0] is {}, and must be SHMEM_SYNC_VALUE, 0, before a collective; "
                    "a program that sets it was compiled with another library's shmem.h",
                    *sync));
  // Not under the mutex: other threads' sets may have to be made first for this one to be.
  const std::uint64_t key = key_of(shape) | kActiveSet;
  MEMSPAN_TRY_ASSIGN(const Entry* const entry, attach(what, shape, key), "an active set");
  auto team = Team::at(world_, shape, entry->place.load(std::memory_order_relaxed), key);
  MutexLock lock(mutex_);
  return active_sets_.emplace_back(std::move(team)).get();
}

// Null if there is no such entry. Sequentially consistent against take_back_unused(): either it
// sees this user, or this sees that the key is gone.
LocalTeams::Entry* LocalTeams::attach_to(Directory& directory, std::uint64_t key) {
  const std::uint32_t count = directory.count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < std::min(count, kMost); ++i) {
    Entry& entry = directory.entries[i];
    if (entry.key.load(std::memory_order_acquire) != key) continue;
    entry.users.fetch_add(1, std::memory_order_seq_cst);
    if (entry.key.load(std::memory_order_seq_cst) == key) return &entry;
    detach(entry);
  }
  return nullptr;
}

// Null if there is no space.
LocalTeams::Entry* LocalTeams::make(const TeamShape& shape, std::uint64_t key) {
  Directory& mine = directory(world_.rank());
  if (mine.is_full.load(std::memory_order_relaxed) != 0) return nullptr;
  Entry* entry = free_entry(mine);
  auto place = entry == nullptr ? std::nullopt : TeamArea::make(world_, shape.size);
  if (!place) {
    take_back_unused(mine);
    entry = free_entry(mine);
    if (entry != nullptr) place = TeamArea::make(world_, shape.size);
  }
  if (place) {
    if (TeamNodes::of(world_, shape) != nullptr) {
      Past& past = pasts_[key];
      past.members = shape.size;
      area_at(*place, shape.size).begin_after(past.last_barrier);
    }
    entry->place.store(*place, std::memory_order_relaxed);
    entry->users.fetch_add(1, std::memory_order_relaxed);
    // Pairs with attach_to(): the area and its place are complete before the key is.
    entry->key.store(key, std::memory_order_seq_cst);
  } else {
    mine.is_full.store(1, std::memory_order_release);
  }
  for (int member = 0; member < shape.size; ++member)
    if (const int peer = shape.peer_of(member); peer != world_.rank() && world_.is_near(peer))
      world_.route(peer).notify_sync();
  return place ? entry : nullptr;
}

LocalTeams::Entry* LocalTeams::free_entry(Directory& mine) {
  const std::uint32_t count = mine.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i)
    if (mine.entries[i].key.load(std::memory_order_relaxed) == 0) return &mine.entries[i];
  if (count == kMost) return nullptr;
  Entry& entry = mine.entries[count];
  entry.key.store(0, std::memory_order_relaxed);
  entry.users.store(0, std::memory_order_relaxed);
  mine.count.store(count + 1, std::memory_order_release);
  return &entry;
}

void LocalTeams::take_back_unused(Directory& mine) {
  const std::uint32_t count = mine.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Entry& entry = mine.entries[i];
    const std::uint64_t key = entry.key.load(std::memory_order_relaxed);
    if (key == 0 || entry.users.load(std::memory_order_seq_cst) != 0) continue;
    entry.key.store(0, std::memory_order_seq_cst);
    if (entry.users.load(std::memory_order_seq_cst) != 0) {
      entry.key.store(key, std::memory_order_seq_cst);  // a user came just now
      continue;
    }
    const std::uint64_t place = entry.place.load(std::memory_order_relaxed);
    if (const auto past = pasts_.find(key); past != pasts_.end())
      past->second.last_barrier = area_at(place, past->second.members).last_barrier();
    world_.free_internal(place);
  }
}

}  // namespace memspan::inline pgas
