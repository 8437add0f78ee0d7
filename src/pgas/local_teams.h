// SPDX-License-Identifier: Apache-2.0
// Teams that each member creates by itself, without communication (CANN SHMEM's). Members agree on
// a sync area at the team's first collective. On each node the first member there allocates the
// area and enters it in the directory of its internal area. The others find it there by the team's
// members.
//
//   directory of a process:  | count | is full | entry 0 | entry 1 | ...
//   entry                    | key: the members | users | place in its internal area |
//
// Teams of the same members share an area, however often each process has made and destroyed them:
// sequence numbers continue from the area. An unused area is taken back when there is no space for
// another. Members on other nodes do not know that. So the process that takes back the area of a
// team on several nodes remembers its last number, and a new area continues from it.
//
// The teams behind OpenSHMEM's active sets are also made in this way, by the first collective of a
// set, and last as long as the job.
#pragma once

#include "pgas/sync_area.h"
#include "pgas/team_members.h"

namespace memspan::inline pgas {

class Team;

class LocalTeams : NotCopyable {
 public:
  struct Entry {
    std::atomic<std::uint64_t> key;  // 0: none
    std::atomic<std::uint64_t> place;
    std::atomic<std::uint64_t> users;  // teams of this node's members that have attached
  };
  static constexpr std::uint32_t kMost = 2048;
  // Names the teams of these members, also among nodes.
  static std::uint64_t key_of(const TeamShape& shape);

  // Allocates this process's directory. All do it right after Team::world(), so that all know its
  // place, and look into others' after a barrier.
  explicit LocalTeams(World& world);
  ~LocalTeams();

  World& world() const { return world_; }
  // The entry of the team of `shape` with that key, this process a member. Waits for the first
  // member, which makes it when it gets here. kOutOfMemory on all members: the first one has no
  // space, for this team and for all teams without an entry. Thread-safe.
  Result<Entry*> attach(const char* what, const TeamShape& shape, std::uint64_t key)
      MEMSPAN_EXCLUDES(mutex_);
  // The team of an active set. All members make the same calls, so each finds it missing, or
  // present, when the others do. The word `sync` must be 0. kInvalidArgument: it is not, the shape
  // does not fit the job, or this process is not a member. Thread-safe; one set is used by one
  // thread at a time.
  Result<Team*> active_set(const char* what, const TeamShape& shape, const long* sync)
      MEMSPAN_EXCLUDES(mutex_);
  // A team no longer uses the entry.
  static void detach(Entry& entry) { entry.users.fetch_sub(1, std::memory_order_seq_cst); }

 private:
  struct Directory {
    std::atomic<std::uint32_t> count;  // of entries, also of those that are free again
    // 1: a team has found no space, and no new one will. So all members find the same, whenever
    // they look.
    std::atomic<std::uint32_t> is_full;
    Entry entries[kMost];
  };

  Directory& directory(int peer) const;
  static Entry* attach_to(Directory& directory, std::uint64_t key);
  Entry* make(const TeamShape& shape, std::uint64_t key) MEMSPAN_REQUIRES(mutex_);
  Entry* free_entry(Directory& mine) MEMSPAN_REQUIRES(mutex_);
  void take_back_unused(Directory& mine) MEMSPAN_REQUIRES(mutex_);
  SyncArea area_at(std::uint64_t place, int members) const {
    return {world_.internal_area(world_.rank()) + place, members};
  }

  World& world_;
  Mutex mutex_;  // of the threads that make entries or active sets
  // A team on several nodes.
  struct Past {
    int members = 0;
    std::uint64_t last_barrier = 0;  // before its area was taken back
  };
  std::unordered_map<std::uint64_t, Past> pasts_ MEMSPAN_GUARDED_BY(mutex_);  // by key
  std::vector<std::unique_ptr<Team>> active_sets_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::inline pgas
