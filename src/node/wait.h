// SPDX-License-Identifier: Apache-2.0
// Waiting that is fast if the answer is near and cheap if it is not: a wait spins if that ended
// earlier waits (core/adaptive_spin.h), yields, and then sleeps on the process's doorbell.
// docs/architecture.md, "Waiting", has the durations.
//
// A wait ends early with kPeerLost if a peer died or departed for good, and with kUnavailable if a
// peer asked the job to end. At its deadline it ends with kTimeout. In a program that survives
// deaths, a wait that knows which peers it needs ends only if one of those is lost. Any other wait
// ends at a death that the process has not acknowledged. A peer that leaves the job while a wait
// needs it is also lost.
#pragma once

#include <functional>
#include <type_traits>

#include "core/adaptive_spin.h"
#include "node/segment.h"
#include "observe/counters.h"

namespace memspan::inline node {

// Receives data from other nodes. Thread-safe.
class ProgressEngine {
 public:
  virtual ~ProgressEngine() = default;
  // Handles what has arrived, without waiting.
  virtual void progress() {}
  // From the first begin_progress() to the last end_progress(), waiting threads keep calling
  // progress(), and the engine's own thread sleeps.
  virtual void begin_progress() {}
  virtual void end_progress() {}
  // A thread between the two calls sleeps: the engine's own thread takes over.
  virtual void rest_progress() {}
};

// The calls of one thread between begin_progress() and end_progress(). One thread at a time.
class ProgressTurn : NotCopyable {
 public:
  explicit ProgressTurn(ProgressEngine* engine) : engine_(engine) {
    if (engine_ != nullptr) engine_->begin_progress();
  }
  ~ProgressTurn() { suspend(); }
  void suspend() {
    if (ProgressEngine* const engine = std::exchange(engine_, nullptr)) engine->end_progress();
  }

 private:
  ProgressEngine* engine_;
};

// State that the waits of one process share. Thread-safe.
struct WaitContext {
  const NodeSegment* segment = nullptr;
  PeerSlot* self = nullptr;
  int rank = 0;
  int spins = 0;                 // looks before the slow path; zero: waits do not spin
  std::uint32_t generation = 0;  // of `self` in the job
  // Deaths and requests up to this count of NodeHeader::alarms are known and end no wait.
  std::atomic<std::uint32_t> known_alarms{0};
  // Waits that begin later last at most this long, whatever their deadline; zero: no limit.
  std::atomic<Duration> limit{Duration::zero()};
  // The program continues after a death (shmemx_set_error_handler).
  std::atomic<bool> survives_deaths{false};
  // Other threads of this process may store what one waits for.
  std::atomic<bool> has_threads{true};
  std::atomic<bool> has_warned_of_end{false};
  std::atomic<std::uint32_t> stuck_waits{0};  // how often PeerSlot::stuck was set
  SpinHabit spin_habit{4, 4096};              // of the slow path

  // Each may be empty, as in a job on one node. Set before the first wait.
  ProgressEngine* engine = nullptr;
  std::function<void(int rank, int how)> on_loss;  // a wait noted this loss in the segment
  std::function<std::string(int rank)> name_of;    // "PE 3 on host b", for messages

  // Whether some peer has begun to leave the job that this process is in.
  bool has_ends() const {
    return segment->header().ending.load(std::memory_order_acquire) == generation;
  }
  // Whether a peer will make no more calls: it is dead, or has begun to leave the job. Its earlier
  // stores are then visible.
  bool is_gone(int peer) const {
    const PeerSlot& its = segment->peer(peer);
    return its.is_dead() || its.ended.load(std::memory_order_acquire) >= generation;
  }
};

// From now on, deaths already marked end only waits that need the dead peers.
void acknowledge_deaths(WaitContext& place);
// The rank of the first process of the job that died; -1 when all live.
int first_dead_peer(const NodeSegment& segment);

// Returns which of two lost peers that a wait needs was lost first, since it may have caused the
// other's end. A peer that has only begun to leave comes last; -1 stands for no peer.
int earlier_lost(const NodeSegment& segment, int one, int other);

// kPeerLost, with the name of the peer and how it ended.
Status lost_peer(const WaitContext& place, int rank, std::string_view when = {});

// Warns once per process that `what` waits in vain, and for which peer. Does nothing before
// `waited` reaches a second or if no peer has begun to leave the job.
void tell_of_end(WaitContext& place, std::string_view what, Duration waited);

// The kind of store that ends the wait, whose writer has to ring. Puts to a sleeper in a barrier
// cost nothing extra.
enum class WaitsFor {
  kSync,  // the library's words: barriers, messages
  kData,  // the user's words
};

// For a wait that cannot know which peer's store will end it.
struct AnybodyIsNeeded {
  int operator()() const { return -1; }
};

// For a wait that can also report the awaited peer to tools. `awaited` returns a rank that has not
// done its part yet, gone or not, or -1.
template <typename Lost, typename Awaited>
struct Needs {
  Lost lost;
  Awaited awaited;
  int operator()() const { return lost(); }
};
template <typename Lost, typename Awaited>
Needs(Lost, Awaited) -> Needs<Lost, Awaited>;

// The slow path of one wait; lives on the waiter's stack.
class SlowPath : NotCopyable {
 public:
  // `what` names the call, for messages and the line that is logged every 60 s.
  SlowPath(WaitContext& place, WaitsFor kind, const char* what, Deadline deadline,
           bool knows_whom_it_needs);
  ~SlowPath();

  bool has_losses() const {
    return place_.segment->header().deaths.load() != 0 || place_.has_ends();
  }
  // Pauses once: a spin, a yield or, later, a sleep. Not ok if the wait must end. `lost` is the
  // rank of a gone peer that the wait needs, or -1. The caller must check the condition between any
  // two calls.
  Status pause(int lost);
  // Whether it is so long that observe/counters.h shows it, with the awaited peer.
  bool is_told() const { return told_ != nullptr; }
  // A negative rank changes nothing: the last named peer stays until the wait is over.
  void tell_awaited(int rank) {
    if (rank >= 0) told_->awaited.store(rank, std::memory_order_relaxed);
  }

 private:
  bool spins_on();
  Status pause_by_the_clock();
  Status alarm_status() const;
  Status exit_status() const;
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
  Duration awake_;                          // sleeps after this long
  std::optional<Clock::time_point> since_;  // the first look at the clock
  std::optional<Clock::time_point> spins_until_;
  ThreadCounters* told_ = nullptr;  // of this thread
  int reports_ = 0;
  int yields_ = 0;
  bool is_patient_ = false;  // sleeps
  Duration nap_{};           // for this long at a time
  std::uint32_t doorbell_ = 0;
  bool is_sleeping_ = false;
  int rings_in_vain_ = 0;
  std::uint64_t stuck_ = 0;                // the value of this process's PeerSlot::stuck
  std::vector<std::uint64_t> seen_stuck_;  // of each peer; of this one, the passes so far
};

// Returns once ready() is true; ready() must load with acquire order. lost() returns the rank of a
// gone peer without which ready() stays false, or -1.
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
    // A peer may have done its part just before it left for good; then it is not lost.
    if (gone >= 0 && ready()) break;
    if (Status status = slow.pause(gone); !status.is_ok()) return ready() ? Status::ok() : status;
    if constexpr (requires { lost.awaited(); })
      if (slow.is_told()) slow.tell_awaited(lost.awaited());
  }
  return Status::ok();
}

}  // namespace memspan::inline node
