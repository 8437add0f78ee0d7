// SPDX-License-Identifier: Apache-2.0
// A team: how it is made of peers, and others of its members. Each class adds one thing:
//
//   TeamMembers   which PEs they are, and this process's place among them
//   TeamBarrier   how they synchronise, by a TeamArea on each node
//   Team          how teams are made: of the job, by a split, of the living (TeamShrink)
#pragma once

#include "pgas/team_barrier.h"
#include "pgas/team_shrink.h"

namespace memspan::inline pgas {

class Team : public TeamBarrier {
 public:
  // The team of all peers; costs no communication.
  static std::unique_ptr<Team> world(World& world);
  // The id of a team whose area `maker` made at `place`.
  static Id id_of(int maker, std::uint64_t place);
  // The team of `shape`, peers of the world and this process among them, whose sync area is at
  // `place` in the internal area of its first member on this node. All members know both by other
  // means.
  static std::unique_ptr<Team> at(World& world, const TeamShape& shape, std::uint64_t place, Id id);
  // The team of `shape`, peers of the world and this process among them, whose members agree on an
  // area at their first barrier. Not collective: members make it when they like.
  static std::unique_ptr<Team> local(LocalTeams& teams, const TeamShape& shape);

  using TeamMembers::world;
  int num_contexts() const { return num_contexts_; }
  void set_num_contexts(int count) { num_contexts_ = count; }

  // Collective over this team. `shape` counts members of this team; every caller gives the same
  // one (kInvalidArgument on all callers when they differ or the shape does not fit). Members of
  // the new team get it, others get null. `what` names the call in messages.
  Result<std::unique_ptr<Team>> split(const char* what, const TeamShape& shape);
  // Collective over this team: the team of those of its members whose memory this process has
  // mapped: those of its node, or only itself if MEMSPAN_TRANSPORT does not allow that.
  Result<std::unique_ptr<Team>> split_mapped(const char* what);
  // Collective over the living members of this team, in step or not: a team of those, in the same
  // order. kPeerLost: another died during the call; then call it again. Deaths up to now end only
  // operations that need the dead.
  Result<std::unique_ptr<Team>> shrink(const char* what) { return shrink_.run(*this, what); }

 private:
  Team(World& world, const TeamShape& shape, Id id, LocalTeams* local_teams = nullptr)
      : TeamBarrier(world, shape, id, local_teams) {}

  int num_contexts_ = 0;
  TeamShrink shrink_;
};

}  // namespace memspan::inline pgas
