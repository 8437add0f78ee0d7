// SPDX-License-Identifier: Apache-2.0
// Teams that each member creates alone, without communication (CANN SHMEM's). Members agree on a
// sync area at the team's first collective: on each node its first member there allocates the area
// and enters it in the directory of its internal area, where the others look it up by the team's
// members.
//
//   directory of a process:  | count | is full | entry 0 | entry 1 | ...
//   entry                    | key: the members | users | place in its internal area |
//
// Teams of the same members share an area, however often each process has made and destroyed them:
// sequence numbers go on from what the area shows. An area that no team uses is taken back when
// there is no room for another. Members on other nodes do not know of that, so who takes back the
// area of a team on several nodes remembers its last number, and a new area goes on from there.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "core/mutex.h"
#include "core/status.h"
#include "pgas/sync_area.h"
#include "world/team_shape.h"
#include "world/world.h"

namespace memspan {

class LocalTeams {
 public:
  struct Entry {
    std::atomic<std::uint64_t> key;  // 0: none
    std::atomic<std::uint64_t> place;
    std::atomic<std::uint64_t> users;  // teams of this node's members that have attached
  };
  static constexpr std::uint32_t kMost = 2048;
  // Names the teams of these members, among nodes as well.
  static std::uint64_t key_of(const TeamShape& shape);

  // Allocates this process's directory. All do it right after Team::world(), so that it lies at a
  // place that all know, and look into others' after a barrier.
  explicit LocalTeams(World& world);
  LocalTeams(const LocalTeams&) = delete;
  LocalTeams& operator=(const LocalTeams&) = delete;

  World& world() const { return world_; }
  // The entry of the team of `shape`, this process a member. Waits for the first member, which
  // makes it when it gets here. kOutOfMemory on all members when that one has no room, which is
  // then so for all teams that are not there yet. Thread-safe.
  Result<Entry*> attach(const char* what, const TeamShape& shape) MEMSPAN_EXCLUDES(mutex_);
  // For the first member on its node, of a team on several nodes that it has no room for: the
  // number of the barrier that fails for that.
  std::uint64_t count_failed_barrier(const TeamShape& shape) MEMSPAN_EXCLUDES(mutex_);
  // Its user does not use it any more.
  static void detach(Entry& entry) { entry.users.fetch_sub(1, std::memory_order_seq_cst); }

 private:
  struct Directory {
    std::atomic<std::uint32_t> count;  // of entries, also of those that are free again
    // 1: there was no room for a team, and there will be for no new one. So what one member finds
    // all find, whenever they look.
    std::atomic<std::uint32_t> is_full;
    Entry entries[kMost];
  };

  Directory& directory(int peer) const;
  static Entry* attach_to(Directory& directory, std::uint64_t key);
  Entry* make(const TeamShape& shape, std::uint64_t key) MEMSPAN_REQUIRES(mutex_);
  Entry* free_entry(Directory& mine) MEMSPAN_REQUIRES(mutex_);
  void take_back_unused(Directory& mine) MEMSPAN_REQUIRES(mutex_);
  SyncArea area_at(std::uint64_t place, int members) const;

  World& world_;
  Mutex mutex_;  // of who makes entries
  // Of a team on several nodes.
  struct Past {
    int members = 0;
    std::uint64_t last_barrier = 0;  // before its area was taken back
  };
  std::unordered_map<std::uint64_t, Past> pasts_ MEMSPAN_GUARDED_BY(mutex_);  // by key
};

}  // namespace memspan
