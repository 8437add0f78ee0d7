// SPDX-License-Identifier: Apache-2.0
// The barriers of a team, and what travels with them: a few words of each member, and small eager
// buffers.
//
// On one node that is a sync area in shared memory. On several, each node has an area, and the
// nodes' first members exchange by messages what was gathered there (node_barrier.h).
#pragma once

#include "pgas/call_signature.h"
#include "pgas/local_teams.h"
#include "pgas/team_area.h"

namespace memspan::inline pgas {

// One thread at a time for collective calls (as OpenSHMEM has it); queries are thread-safe.
class TeamBarrier : public TeamMembers {
 public:
  // Collective over this team, unless it is local(). Afterwards no member uses the team's memory,
  // and its area is given back. The object is then good for destruction only.
  Status destroy(const char* what);

  // Comes before all else in a collective except barrier() itself. Afterwards the number of its
  // barrier and the eager buffer may be used.
  Status prepare(const char* what) {
    return local_teams_ == nullptr ? Status::ok() : prepare_local(what);
  }

  // Collective: returns when all members have entered it; their earlier stores are then visible.
  // After a kTimeout, which names the missing members, or a kPeerLost the members are out of step,
  // and every later barrier fails in the same way.
  // Carries up to kPayloadWords words of each member, readable through word() until this process's
  // next barrier.
  Status barrier(const char* what, const std::uint64_t* words = nullptr, int count = 0);
  // Instead of a barrier that this member cannot enter: it is out of step from now on, because of
  // `why`, which is returned.
  Status give_up(Status why) { return broken_ = std::move(why); }
  // As barrier(), carrying up to kSignatureWord words. kInvalidArgument: the next member gave
  // something else than `mine`, or is in another call. If members differ, at least one gets that.
  Status barrier_checked(const char* what, const CollectiveSignature& mine,
                         const std::uint64_t* words = nullptr, int count = 0);
  // A broadcast's barrier: `root`, which carries the words, does not wait. The others wait only for
  // the root, so it is over here when the root has entered it. If that is not possible, it is
  // barrier_checked(). kInvalidArgument: the root gave something else than `mine`. Values of other
  // members are compared later, and a difference then ends the team.
  Status barrier_of_root(const char* what, const CollectiveSignature& mine, int root,
                         const std::uint64_t* words = nullptr, int count = 0);
  // Before my_eager_buffer() is written: no member still reads it. Does not wait after a barrier.
  Status make_room(const char* what) { return await_turn(what, area_.eager_turns()); }
  // Waits until all members have entered this process's last barrier, and so left all before it.
  Status settle(const char* what) {
    return entered_ == sequence_ ? Status::ok() : await_entered(what, sequence_);
  }
  // The number of this process's last barrier, the same on all members.
  std::uint64_t sequence() const { return sequence_; }
  std::uint64_t word(int member, int i) const {
    return area_.line(member, sequence_).words[i].load(std::memory_order_relaxed);
  }
  // This process's eager buffer for its next barrier (make_room()), and a member's for the last
  // one.
  std::size_t eager_bytes() const { return area_.eager_bytes(); }
  std::byte* my_eager_buffer() const { return area_.eager_buffer(index(), sequence_ + 1); }
  const std::byte* eager_buffer(int member) const { return area_.eager_buffer(member, sequence_); }
  // A team of the living that a member proposes (TeamShrink).
  std::atomic<std::uint64_t>& proposal() const { return area_.header().proposal; }

 protected:
  // The members have an area that open() names, or `local_teams` gives them one at their first
  // barrier.
  TeamBarrier(World& world, const TeamShape& shape, Id id, LocalTeams* local_teams);
  void open(std::uint64_t place) {
    area_.open(place);
    catch_up();
  }

 private:
  Status prepare_local(const char* what);
  // The sequence continues from the area, in which no broadcast is under way: a process may leave a
  // job and join it again, and have several local teams of the same members.
  void catch_up() { sequence_ = entered_ = area_.last_barrier_of(index()); }
  Status await_entered(const char* what, std::uint64_t sequence);
  // Waits until the next barrier's line or buffer, one of so many, is no longer read.
  Status await_turn(const char* what, std::uint64_t turns) {
    return sequence_ + 2 <= entered_ + turns ? Status::ok()
                                             : await_entered(what, sequence_ + 2 - turns);
  }
  Status check_broadcasts(std::uint64_t last);
  Status explain(const Status& status, std::uint64_t sequence) const;
  int next_member() const { return index() + 1 < size() ? index() + 1 : 0; }
  // Writes the signature to this member's line of barrier `sequence`, and returns it.
  std::uint64_t sign(const CollectiveSignature& mine, std::uint64_t sequence) const {
    const std::uint64_t signature = mine.encode(sequence);
    area_.line(index(), sequence).words[kSignatureWord].store(signature, std::memory_order_relaxed);
    return signature;
  }
  // With that of `member` for the barrier just over.
  Status compare_signature(std::uint64_t mine, int member) const {
    const std::uint64_t other = word(member, kSignatureWord);
    if (other == mine) [[likely]]
      return Status::ok();
    return CollectiveSignature::explain_difference(mine, other, peer_of(member));
  }

  void publish(const std::uint64_t* words, int count, std::uint64_t sequence);
  void clear_words_of_earlier_barriers(int from, std::uint64_t sequence);
  Status barrier_by_all_to_all_flags(const char* what, std::uint64_t sequence);
  Status barrier_by_central_counter(const char* what, std::uint64_t sequence);

  TeamArea area_{*this};
  std::uint64_t sequence_ = 0;  // of the last barrier
  std::uint64_t entered_ = 0;   // the last one that all members are known to have entered
  const bool uses_central_counter_;
  const bool is_uncommon_;              // local, or on several nodes
  Status broken_;                       // why the team can have no more barriers
  LocalTeams* const local_teams_;       // of a local one
  LocalTeams::Entry* entry_ = nullptr;  // the same, once it has had one
};

}  // namespace memspan::inline pgas
