// SPDX-License-Identifier: Apache-2.0
// The sync area of a team on this node as the barriers use it: which members have entered a
// barrier, which one is missing, and when the area serves another team.
#pragma once

#include <cstring>

#include "pgas/sync_area.h"
#include "pgas/team_members.h"

namespace memspan::inline pgas {

class TeamArea : public SyncArea, NotCopyable {
 public:
  explicit TeamArea(const TeamMembers& members) : members_(members), world_(members.world()) {}
  // A place for the area of so many members in the internal area of this process, all zero; nullopt
  // if there is no space.
  static std::optional<std::uint64_t> make(World& world, int members) {
    const std::uint64_t bytes = bytes_for(members);
    const auto place = world.allocate_internal(bytes);
    if (place)
      std::memset(static_cast<void*>(world.internal_area(world.rank()) + *place), 0, bytes);
    return place;
  }

  const TeamMembers& members() const { return members_; }
  // From now on the area is the one at `place` in the internal area of the node's first member.
  void open(std::uint64_t place) {
    const int first = members_.peer_of(members_.node_leader());
    SyncArea::operator=({world_.internal_area(first) + place, members_.size()});
    place_ = place;
  }
  // After the last barrier. The first member gives the area back when all of the node have left it.
  Status leave(const char* what) {
    SyncHeader& mine = header();
    mine.departed.fetch_add(1, std::memory_order_acq_rel);
    if (!members_.is_node_leader()) return Status::ok();
    if (members_.nodes()) world_.messages().discard(MessageKind::kBarrier, members_.id());
    // Only when the last member of the node has taken its last look may the area serve another
    // team.
    const auto present = static_cast<std::uint64_t>(members_.near_members());
    MEMSPAN_PASS(wait_for(
        world_.waiting(), WaitsFor::kSync, what, Deadline::never(),
        [&] { return mine.departed.load(std::memory_order_acquire) == present; },
        [&] {
          // A member that has begun to leave has counted itself before.
          for (int member = 0; member < members_.size(); ++member)
            if (members_.is_near(member) && !members_.is_alive(member))
              return members_.peer_of(member);
          return -1;
        }));
    world_.free_internal(place_);
    return Status::ok();
  }

  bool has_entered(int member, std::uint64_t sequence) const {
    return line(member, sequence).sequence.load(std::memory_order_acquire) >= sequence;
  }
  // Waits until `member` has entered barrier `sequence`. lost() is the peer that the wait names if
  // it cannot succeed, or -1.
  template <typename Lost>
  Status await_flag(const char* what, int member, std::uint64_t sequence, Lost lost) const {
    const std::atomic<std::uint64_t>& flag = line(member, sequence).sequence;
    return wait_for(
        world_.waiting(), WaitsFor::kSync, what, Deadline::never(),
        [&] { return flag.load(std::memory_order_acquire) >= sequence; },
        Needs{lost, [&] { return members_.peer_of(member); }});
  }
  // A gone peer without which barrier `sequence` cannot be, or -1. So a barrier is over for all the
  // living, or fails for all: a member that entered it and then died does not fail it.
  int missing_from_flags(std::uint64_t sequence) const {
    // First whether it is gone, then its flag: a member that is gone sets no more flags.
    for (int member = 0; member < members_.size(); ++member)
      if (const int peer = members_.peer_of(member);
          world_.is_near(peer) && world_.waiting().is_gone(peer) && !has_entered(member, sequence))
        return peer;
    return -1;
  }
  // The first peer whose member has not entered barrier `sequence`, or -1.
  int first_awaited(std::uint64_t sequence) const {
    for (int member = 0; member < members_.size(); ++member)
      if (!has_entered(member, sequence)) return members_.peer_of(member);
    return -1;
  }
  // Barrier `sequence` is over for the members that wait for that, not for flags.
  void release(std::uint64_t sequence) const {
    header().released.store(sequence, std::memory_order_release);
    // As in Route::notify().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (world_.segment().header().anybody_sleeps.load(std::memory_order_relaxed) != 0)
      world_.segment().ring_all();
  }

 private:
  const TeamMembers& members_;
  World& world_;
  std::uint64_t place_ = 0;
};

}  // namespace memspan::inline pgas
