// SPDX-License-Identifier: Apache-2.0
// Where teams meet that each member makes alone, without a meeting (CANN SHMEM's). Members agree on
// an area at the team's first collective: its first member makes the area and enters it in the
// directory of its internal area, where the others look for the team's members.
//
//   directory of a process:  | count | is full | entry 0 | entry 1 | ...
//   entry                    | key: the members | users | place in its internal area |
//
// Teams of the same members share an area, however often each process has made and destroyed them:
// numbers of meetings go on from what the area shows. An area that nobody uses is taken back when
// there is no room for another.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/mutex.h"
#include "core/status.h"
#include "world/team_shape.h"
#include "world/world.h"

namespace memspan {

class LocalTeams {
 public:
  struct Entry {
    std::atomic<std::uint64_t> key;  // 0: none
    std::atomic<std::uint64_t> place;
    std::atomic<std::uint64_t> users;  // teams of all members that have attached
  };
  static constexpr std::uint32_t kMost = 2048;

  // Allocates this process's directory. All do it right after Team::world(), so that it lies at a
  // place that all know, and look into others' after they have met.
  explicit LocalTeams(World& world);
  LocalTeams(const LocalTeams&) = delete;
  LocalTeams& operator=(const LocalTeams&) = delete;

  World& world() const { return world_; }
  // The entry of the team of `shape`, this process a member. Waits for the first member, which
  // makes it when it gets here. kOutOfMemory on all members when that one has no room, which is
  // then so for all teams that are not there yet. Thread-safe.
  Result<Entry*> attach(const char* what, const TeamShape& shape) MEMSPAN_EXCLUDES(mutex_);
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

  World& world_;
  Mutex mutex_;  // of who makes entries
};

}  // namespace memspan
