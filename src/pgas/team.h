// SPDX-License-Identifier: Apache-2.0
// A team: an arithmetic progression of peers, this process's place in it, and where it meets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/status.h"
#include "pgas/local_teams.h"
#include "pgas/sync_area.h"
#include "world/team_shape.h"
#include "world/world.h"

namespace memspan {

enum class CollectiveKind : std::uint8_t {
  kBroadcast = 1,
  kCollect,
  kAlltoall,
  kAlltoalls,
  kReduce,
  kScan
};

// What all members of a collective have to give alike, as far as a word has room for it: a mistake
// is then found in the meeting that the collective makes anyway.
struct Alike {
  CollectiveKind kind;
  std::size_t bytes;  // of a member's elements; modulo 2^40
  int root = 0;

  // | kind: 4 | meeting: 6 | root: 14 | bytes: 40 |. The meeting's number tells the word from what
  // an earlier one left.
  std::uint64_t encode(std::uint64_t meeting) const {
    return static_cast<std::uint64_t>(kind) << 60 | (meeting & 0x3f) << 54 |
           static_cast<std::uint64_t>(root) << 40 | (bytes & 0xff'ffff'ffff);
  }
};
static_assert(kMostPeersPerHost <= 1 << 14);

// One thread at a time for anything that meets (as OpenSHMEM has it); queries are thread-safe.
class Team {
 public:
  // The team of all peers; costs no communication.
  static std::unique_ptr<Team> world(World& world);
  // A place for a team of so many in the internal area of this process, all zero; nullopt when
  // there is no room.
  static std::optional<std::uint64_t> make_area(World& world, int members);
  // The team of `shape`, peers of the world and this process among them, which meets at `place` of
  // its first member's internal area. All members know that by other means.
  static std::unique_ptr<Team> at(World& world, const TeamShape& shape, std::uint64_t place);
  // The team of `shape`, peers of the world and this process among them, which meets where its
  // members agree to when they first do. Not collective: members make it when they like.
  static std::unique_ptr<Team> local(LocalTeams& teams, const TeamShape& shape);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  World& world() const { return world_; }
  const TeamShape& shape() const { return shape_; }
  int size() const { return shape_.size; }
  int index() const { return index_; }  // of this process
  int peer_of(int member) const { return shape_.peer_of(member); }
  int num_contexts() const { return num_contexts_; }
  void set_num_contexts(int count) { num_contexts_ = count; }

  // Collective over this team. `shape` counts members of this team; every caller gives the same
  // one (kInvalidArgument on all callers when they differ or the shape does not fit). Members of
  // the new team get it, others get null. `what` names the call in messages.
  Result<std::unique_ptr<Team>> split(const char* what, const TeamShape& shape);
  // Collective over the living members of this team, in step or not: a team of those, in the same
  // order. kPeerLost when another died meanwhile; then call it again. Deaths up to now end only
  // what needs the dead.
  Result<std::unique_ptr<Team>> shrink(const char* what);
  // Collective over this team, unless it is local(): after it nobody uses the team's memory and its
  // area is given back. The object is then good for destruction only.
  Status disband(const char* what);

  // Ahead of anything of a collective but meet() itself: the number of its meeting and the scratch
  // buffer may be used after it.
  Status prepare(const char* what) {
    return local_teams_ == nullptr ? Status::ok() : prepare_local(what);
  }

  // Collective: returns when all members have arrived; their earlier stores are then visible. After
  // a kTimeout, which names who did not come, or a kPeerLost the members are out of step, and every
  // later meeting fails in the same way.
  Status meet(const char* what);
  // The same, carrying up to kMeetingWords words of each member, readable through word() until
  // this process's next meeting.
  Status meet(const char* what, const std::uint64_t* words, int count);
  // The same, carrying up to kAlikeWord words. kInvalidArgument when the next member gave something
  // else than `mine`, or is in another call: of members that differ at least one gets that.
  Status meet_alike(const char* what, const Alike& mine, const std::uint64_t* words = nullptr,
                    int count = 0);
  // The number of this process's last meeting, the same on all members.
  std::uint64_t sequence() const { return sequence_; }
  std::uint64_t word(int member, int i) const {
    return area_.line(member, sequence_).words[i].load(std::memory_order_relaxed);
  }
  // This process's scratch buffer for its next meeting, and a member's for the last one.
  std::size_t scratch_bytes() const { return area_.scratch_bytes(); }
  std::byte* my_scratch() const { return area_.scratch(index_, sequence_ + 1); }
  const std::byte* scratch(int member) const { return area_.scratch(member, sequence_); }

 private:
  Team(World& world, const TeamShape& shape);
  Team(World& world, const TeamShape& shape, std::uint64_t place);
  void move_to(std::uint64_t place);
  Status prepare_local(const char* what);
  void catch_up();
  Status explain(const Status& status, std::uint64_t sequence) const;
  Status explain_difference(std::uint64_t mine, int member) const;
  bool is_alive(int member) const;
  // A peer that is gone and without whom meeting `sequence` cannot be, or -1. So a meeting is over
  // for all the living, or fails for all: who came before it died does not fail it.
  int lost_by_flags(std::uint64_t sequence) const;
  int lost_by_counter(std::uint64_t sequence) const;
  Status propose_living();
  Status meet_by_flags(const char* what, std::uint64_t sequence);
  Status meet_by_counter(const char* what, std::uint64_t sequence);

  World& world_;
  TeamShape shape_;
  int index_;
  SyncArea area_;
  std::uint64_t area_offset_ = 0;  // in the first member's internal area
  std::uint64_t sequence_ = 0;     // of the last meeting
  bool by_counter_;
  int num_contexts_ = 0;
  Status broken_;                       // why the team cannot meet any more
  LocalTeams* local_teams_ = nullptr;   // of a local one
  LocalTeams::Entry* entry_ = nullptr;  // the same, once it has met
};

// kInvalidArgument, naming the reason, when `shape` does not fit a parent of `parent_size`.
Status check_shape(const TeamShape& shape, int parent_size);

}  // namespace memspan
