// SPDX-License-Identifier: Apache-2.0
// Processes of one host that do collectives on ordinary memory. What moves goes through stages:
// pieces of shared memory that their owner writes before a meeting and the others read after it.
//
//   heap of a member:  | arrivals | stage 0 | stage 1 | channel to 0 | channel to 1 | ...
//
// The stages are used in turn: what was written for a meeting is read until the next one, so who is
// ahead writes the other. Hence every meeting moves data, and a long transfer has one a piece.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/status.h"
#include "pgas/team.h"
#include "world/membership.h"
#include "world/world.h"

namespace memspan::pgas {

// Small enough for the stages of two members to stay in their second-level caches, large enough for
// a meeting to cost little beside it.
inline constexpr std::size_t kStageBytes = std::size_t{512} << 10;
// What a member has of messages for another one.
inline constexpr std::size_t kChannelBytes = std::size_t{128} << 10;
inline constexpr int kMostGroupMembers = 1024;

// Collectives one thread at a time; the rest is thread-safe.
class ProcessGroup {
 public:
  // Collective. `limit` bounds this and every wait of the group.
  static Result<std::unique_ptr<ProcessGroup>> join(int rank, int size, const Exchange& exchange,
                                                    Duration limit);
  // Of a job that exists; the World's heap has heap_bytes(size) bytes and is used for nothing else.
  explicit ProcessGroup(std::unique_ptr<World> world);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  static std::size_t heap_bytes(int size);

  // Takes this member out of the group for good: ends its own waits, and those of others for what
  // it has not done yet. What it has done stays where they find it. Thread-safe, also during calls.
  void leave() { world_->board().mark_departed(rank()); }
  bool has_left() const {
    return world_->board().peer(rank()).death.load(std::memory_order_acquire) != 0;
  }

  World& world() const { return *world_; }
  Team& team() const { return *team_; }
  int rank() const { return world_->rank(); }
  int size() const { return world_->size(); }

  // This process's stage for its next meeting, and a member's for the last one.
  std::byte* my_stage() const { return stage(rank(), team_->sequence() + 1); }
  const std::byte* stage_of(int member) const { return stage(member, team_->sequence()); }
  // Says that this member is about to do its next collective. Once for each, or for none.
  void arrive();
  // Whether all have said so for the collective that this one last said it for: kTimeout when not
  // yet. They will, so who waits for them does not wait for anything that this member does first.
  Status wait_for_arrivals(Duration patience);

  // Of every wait that begins from now on, in this process.
  void set_limit(Duration limit) { world_->waiting().limit = limit; }

  // Where `sender` writes messages for `receiver`.
  std::byte* channel(int sender, int receiver) const;

 private:
  std::byte* stage(int member, std::uint64_t sequence) const {
    return world_->heap_of(member) + kArrivalsBytes + (sequence & 1) * kStageBytes;
  }

  static constexpr std::size_t kArrivalsBytes = kFalseSharingRange;

  // Of all members at all collectives, in the first one's heap. A member arrives at the next one
  // only when it has done the last, which all arrived at: so the sum says enough.
  std::atomic<std::uint64_t>& arrivals() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(world_->heap_of(0));
  }

  std::unique_ptr<World> world_;
  std::unique_ptr<Team> team_;
  std::uint64_t arrived_ = 0;  // how often this member has
};

}  // namespace memspan::pgas
