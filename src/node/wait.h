// SPDX-License-Identifier: Apache-2.0
// Waiting that is fast if the answer is near and cheap if it is not: a wait spins if that ended
// earlier waits (core/adaptive_spin.h), yields, and then sleeps on the process's doorbell.
// docs/architecture.md, "Waiting", has the durations.
//
// A wait ends early with kPeerLost when a peer has died or departed for good, with kUnavailable
// when a peer asked the job to end, with kTimeout at its deadline. In a program that survives
// deaths, a wait that knows whom it needs ends only when one of those is lost; another, when there
// is a death that the process has not acknowledged. A peer that leaves the job while a wait needs
// it is lost, too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/adaptive_spin.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/status.h"
#include "node/counters.h"
#include "node/segment.h"

namespace memspan {

// Takes what comes from other nodes. Thread-safe.
class ProgressEngine {
 public:
  virtual ~ProgressEngine() = default;
  // Takes what has come, without waiting.
  virtual void progress() {}
  // From the first of them to the last end_progress(), threads that wait call progress() all the
  // time, and the engine's own thread sleeps.
  virtual void begin_progress() {}
  virtual void end_progress() {}
  // A thread between the two sleeps: the engine's own thread takes what comes.
  virtual void rest_progress() {}
};

// The calls of one thread between begin_progress() and end_progress(). One thread at a time.
class ProgressTurn {
 public:
  explicit ProgressTurn(ProgressEngine* engine) : engine_(engine) { resume(); }
  ~ProgressTurn() { suspend(); }
  ProgressTurn(const ProgressTurn&) = delete;
  ProgressTurn& operator=(const ProgressTurn&) = delete;
  void suspend() {
    if (engine_ != nullptr && is_on_) engine_->end_progress();
    is_on_ = false;
  }
  void resume() {
    if (engine_ != nullptr && !is_on_) engine_->begin_progress();
    is_on_ = true;
  }

 private:
  ProgressEngine* const engine_;
  bool is_on_ = false;
};

// What the waits of one process share. Thread-safe.
struct WaitContext {
  const NodeSegment* segment = nullptr;
  PeerSlot* self = nullptr;
  int rank = 0;
  int spins = 0;                 // looks before the slow path; zero: nobody spins
  std::uint32_t generation = 0;  // of `self` in the job
  // Deaths and requests up to this count of NodeHeader::alarms are known and end no wait.
  std::atomic<std::uint32_t> known_alarms{0};
  // No wait that begins later lasts longer, whatever its own deadline; zero: it may.
  std::atomic<Duration> limit{Duration::zero()};
  // The program goes on after a death (shmemx_set_error_handler).
  std::atomic<bool> survives_deaths{false};
  // Other threads of this process may store what one waits for.
  std::atomic<bool> has_threads{true};
  std::atomic<bool> has_warned_of_end{false};
  std::atomic<std::uint32_t> stuck_waits{0};  // how often PeerSlot::stuck was set
  SpinHabit spin_habit{4, 4096};              // of the slow path

  // Each may be empty, and is in a job on one node. They are set before the first wait.
  ProgressEngine* engine = nullptr;
  std::function<void(int rank, int how)> on_loss;  // a wait noted this loss in the segment
  std::function<std::string(int rank)> name_of;    // "PE 3 on host b", for messages

  // Whether some peer has begun to leave the job that this process is in.
  bool has_ends() const {
    return segment->header().ending.load(std::memory_order_acquire) == generation;
  }
  // Whether a peer will make no call any more: it is dead, or has begun to leave the job. What it
  // stored before is visible then.
  bool is_gone(int peer) const {
    const PeerSlot& its = segment->peer(peer);
    return its.death.load(std::memory_order_acquire) != 0 ||
           its.ended.load(std::memory_order_acquire) >= generation;
  }
};

// From now on the deaths that have been noted end only what needs the dead.
void acknowledge_deaths(WaitContext& place);
// The rank of the first process of the job that died; -1 when all live.
int first_dead_peer(const NodeSegment& segment);

// Of several peers without whom a wait cannot end well, the one that was lost first: others may
// have gone because of it. Who has only begun to leave comes after those. A value.
class FirstLost {
 public:
  explicit FirstLost(const NodeSegment& segment) : segment_(&segment) {}
  void add(int rank);
  int rank() const { return rank_; }  // -1: none was added

 private:
  const NodeSegment* segment_;
  int rank_ = -1;
  std::uint32_t least_ = 0;
};

// kPeerLost, saying who is gone and how.
Status lost_peer(const WaitContext& place, int rank, std::string_view when = {});

// Says once in this process that `what` waits, and for whom in vain, when it has waited for a
// second and a peer has begun to leave the job.
void tell_of_end(WaitContext& place, std::string_view what, Duration waited);

// Whose store ends the wait, and so who has to ring. A sleeper in a barrier costs those who put
// to it nothing.
enum class WaitsFor {
  kSync,  // the library's words: barriers, messages
  kData,  // the user's words
};

// For a wait that cannot know whose store will end it.
struct AnybodyIsNeeded {
  int operator()() const { return -1; }
};

// For a wait that can also tell those who look from outside whom it waits for: `awaited` gives a
// rank that has not done its part yet, gone or not, or -1.
template <typename Lost, typename Awaited>
struct Needs {
  Lost lost;
  Awaited awaited;
  int operator()() const { return lost(); }
};
template <typename Lost, typename Awaited>
Needs(Lost, Awaited) -> Needs<Lost, Awaited>;

// The slow path of one wait; lives on the waiter's stack.
class SlowPath {
 public:
  // `what` names the call, for messages and the line that is logged every 60 s.
  SlowPath(WaitContext& place, WaitsFor kind, const char* what, Deadline deadline,
           bool knows_whom_it_needs);
  ~SlowPath();
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;

  bool has_losses() const {
    return place_.segment->header().deaths.load() != 0 || place_.has_ends();
  }
  // One more pause: a spin, a yield or, later, a sleep. Not ok when the wait has to end; `lost` is
  // the rank of a peer that is gone and without whom it cannot end well, or -1. The condition must
  // be looked at between any two calls.
  Status pause(int lost);
  // Whether it lasts so long that others are told of it (node/counters.h), and for whom it waits.
  bool is_told() const { return told_ != nullptr; }
  // Nobody's rank tells nothing: who came last stays named until the wait is over.
  void tell_awaited(int rank) {
    if (rank >= 0) told_->awaited.store(rank, std::memory_order_relaxed);
  }

 private:
  bool spins_on();
  Status pause_by_the_clock();
  void tell();
  double seconds() const;  // since the first look at the clock
  Status alarm_status() const;
  Status exit_status() const;
  // Another thread may take this process out of the job meanwhile (NodeSegment::mark_departed).
  bool has_left() const {
    return place_.self->state.load(std::memory_order_acquire) == PeerState::kLeft;
  }
  Status death_status(int rank) const;
  void note_loss(int rank);
  Status end_status(Duration waited);
  bool is_everybody_stuck();
  void sleep();
  void set_sleeping_flags();

  WaitContext& place_;
  ProgressTurn turn_;
  const WaitsFor kind_;
  const char* what_;
  const bool knows_whom_it_needs_;
  const Deadline deadline_;
  Duration awake_;                          // sleeps after so long
  std::optional<Clock::time_point> since_;  // the first look at the clock
  std::optional<Clock::time_point> spins_until_;
  ThreadCounters* told_ = nullptr;  // of this thread
  int reports_ = 0;
  int yields_ = 0;
  bool is_patient_ = false;  // sleeps
  Duration nap_{};           // for so long at a time
  std::uint32_t doorbell_ = 0;
  bool is_sleeping_ = false;
  int rings_in_vain_ = 0;
  std::uint64_t stuck_ = 0;                // what PeerSlot::stuck of this process says
  std::vector<std::uint64_t> seen_stuck_;  // of each peer; of this one, the passes so far
};

// Returns once ready() is true; ready() must load with acquire order. lost() gives the rank of a
// peer that is gone and without whom ready() never will be, or -1.
template <typename Ready, typename Lost = AnybodyIsNeeded>
Status wait_for(WaitContext& place, WaitsFor kind, const char* what, Deadline deadline, Ready ready,
                Lost lost = {}) {
  for (int spin = place.spins; spin > 0; --spin) {
    if (ready()) return Status::ok();
    cpu_pause();
  }
  if (ready()) return Status::ok();
  SlowPath slow(place, kind, what, deadline, !std::is_same_v<Lost, AnybodyIsNeeded>);
  while (!ready()) {
    const int gone = slow.has_losses() ? lost() : -1;
    // Who has left for good may have done its part just before: it is not lost to anybody then.
    if (gone >= 0 && ready()) break;
    if (Status status = slow.pause(gone); !status.is_ok()) return ready() ? Status::ok() : status;
    if constexpr (requires { lost.awaited(); })
      if (slow.is_told()) slow.tell_awaited(lost.awaited());
  }
  return Status::ok();
}

}  // namespace memspan
