// SPDX-License-Identifier: Apache-2.0
// Waiting that is quick when the answer is near and cheap when it is not: spin for about a
// microsecond (not at all when there are more processes than cores), then let others run, then
// sleep on the process's doorbell.
//
// A wait ends early with kPeerLost when a peer has died or departed for good, with kUnavailable
// when a peer asked the job to end, with kTimeout at its deadline. In a program that survives
// deaths, a wait that knows whom it needs ends only when one of those is lost; another, when there
// is a death that the process has not acknowledged. A peer that leaves the job while a wait needs
// it is lost, too.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/status.h"
#include "world/board.h"

namespace memspan {

// What the waits of one process share. Thread-safe.
struct WaitPlace {
  const Board* board = nullptr;
  BoardPeer* self = nullptr;
  int rank = 0;
  int spins = 0;                 // looks before the first sched_yield
  std::uint32_t generation = 0;  // of `self` in the job
  // Deaths and requests up to this count of BoardHeader::alarms are known and end no wait.
  std::atomic<std::uint32_t> known_alarms{0};
  // No wait that begins later lasts longer, whatever its own deadline; zero: it may.
  std::atomic<Duration> limit{Duration::zero()};
  // The program goes on after a death (shmemx_set_error_handler).
  std::atomic<bool> survives_deaths{false};
  // Other threads of this process may store what one waits for.
  std::atomic<bool> has_threads{true};
  std::atomic<bool> has_warned_of_end{false};
  std::atomic<std::uint32_t> stuck_waits{0};  // how often BoardPeer::stuck was set

  // Whether some peer has begun to leave the job that this process is in.
  bool has_ends() const {
    return board->header().ending.load(std::memory_order_acquire) == generation;
  }
  // Whether a peer will make no call any more: it is dead, or has begun to leave the job. What it
  // stored before is visible then.
  bool is_gone(int peer) const {
    const BoardPeer& its = board->peer(peer);
    return its.death.load(std::memory_order_acquire) != 0 ||
           its.ended.load(std::memory_order_acquire) >= generation;
  }
};

// From now on the deaths that have been noted end only what needs the dead.
void acknowledge_deaths(WaitPlace& place);
// The rank of the first process of the job that died; -1 when all live.
int first_dead_peer(const Board& board);

// kPeerLost, saying who is gone and how.
Status lost_peer(const Board& board, int rank);

// Whose store ends the wait, and so who has to ring. A sleeper in a meeting costs those who put
// to it nothing.
enum class WaitsFor {
  kMeeting,  // ours: teams' sequence words
  kData,     // the user's words
};

// For a wait that cannot know whose store will end it.
struct AnybodyIsNeeded {
  int operator()() const { return -1; }
};

// The patient part of one wait; lives on the waiter's stack.
class SlowWait {
 public:
  // `what` names the call, for messages and the line that is logged every 60 s.
  SlowWait(WaitPlace& place, WaitsFor kind, const char* what, Deadline deadline,
           bool knows_whom_it_needs);
  ~SlowWait() {
    if (stuck_ != 0) place_.self->stuck.store(0, std::memory_order_release);
  }
  SlowWait(const SlowWait&) = delete;
  SlowWait& operator=(const SlowWait&) = delete;

  bool has_losses() const { return place_.board->header().deaths.load() != 0 || place_.has_ends(); }
  // One more pause: a yield or, later, a sleep. Not ok when the wait has to end; `lost` is the rank
  // of a peer that is gone and without whom it cannot end well, or -1. The condition must be looked
  // at between any two calls.
  Status pause(int lost);

 private:
  Status pause_by_the_clock();
  double seconds() const;  // since the first look at the clock
  Status alarm_status() const;
  Status exit_status() const;
  // Another thread may take this process out of the job meanwhile (Board::mark_departed).
  bool has_left() const {
    return place_.self->state.load(std::memory_order_acquire) == PeerState::kLeft;
  }
  Status death_status(int rank) const;
  Status end_status(Duration waited);
  bool is_everybody_stuck();
  void sleep();
  void arm();

  WaitPlace& place_;
  const WaitsFor kind_;
  const char* what_;
  const bool knows_whom_it_needs_;
  const Deadline deadline_;
  std::optional<Clock::time_point> since_;  // the first look at the clock
  int reports_ = 0;
  int yields_ = 0;
  bool is_patient_ = false;  // sleeps
  std::uint32_t bell_ = 0;
  bool is_armed_ = false;
  int rings_in_vain_ = 0;
  std::uint64_t stuck_ = 0;                // what BoardPeer::stuck of this process says
  std::vector<std::uint64_t> seen_stuck_;  // of each peer; of this one, the passes so far
};

// Returns once ready() is true; ready() must load with acquire order. lost() gives the rank of a
// peer that is gone and without whom ready() never will be, or -1.
template <typename Ready, typename Lost = AnybodyIsNeeded>
Status wait_for(WaitPlace& place, WaitsFor kind, const char* what, Deadline deadline, Ready ready,
                Lost lost = {}) {
  for (int spin = place.spins; spin > 0; --spin) {
    if (ready()) return Status::ok();
    cpu_pause();
  }
  if (ready()) return Status::ok();
  SlowWait slow(place, kind, what, deadline, !std::is_same_v<Lost, AnybodyIsNeeded>);
  while (!ready())
    if (Status status = slow.pause(slow.has_losses() ? lost() : -1); !status.is_ok())
      return ready() ? Status::ok() : status;
  return Status::ok();
}

}  // namespace memspan
