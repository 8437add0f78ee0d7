// SPDX-License-Identifier: Apache-2.0
// The engine of a transport: it owns all connections. Only the thread that holds its lock, the
// turn, touches them. Nothing waits with the turn (docs/design/0028-far-path.md).
//
// Three kinds of threads take the turn: those that submit something, those that wait for something
// and serve all connections until it has come, and the engine's own thread, which serves them while
// no thread waits. It sleeps in an outer epoll set, whose members are the set of all sources and a
// wake event. While a thread waits, the set of all sources is disarmed: two threads for one message
// cost more than the message.
//
// A thread that waits repeatedly keeps the set disarmed between its waits. Otherwise events for its
// next wait would wake the engine's thread. That thread checks from time to time, and arms the set
// when the waits have ended. The longer they lasted, the later it checks: an event after the last
// wait is delayed by an eighth of their time, at most 1 ms.
#pragma once

#include <sys/epoll.h>

#include <functional>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/adaptive_spin.h"
#include "core/fd.h"
#include "core/interrupt.h"
#include "node/wait.h"

namespace memspan::inline transport {

// The longest sleep of a call that waits. Then it looks at its limit and for interrupts.
inline constexpr auto kLongestSleep = std::chrono::milliseconds(20);

// Something with a descriptor. The engine calls it with the turn.
class Source {
 public:
  virtual ~Source() = default;
  // `events` of epoll, or 0: the time of wake_at() has come, or it asked for another call.
  virtual void on_ready(std::uint32_t events) = 0;
  // Handles what has arrived; returns whether that was something. For a source that needs no epoll
  // for it.
  virtual bool look() { return false; }
};

// Thread-safe. Functions that require the turn are for sources and for threads with a Turn.
class Engine final : public ProgressEngine {
 public:
  using Id = std::uint64_t;  // of a source; 0: none

  // `after_turn` is called without the turn by each thread that has served sources and may run code
  // of the program.
  static Result<std::unique_ptr<Engine>> start(std::function<void()> after_turn = [] {});
  // Ends the thread.
  ~Engine() override;
  void stop() MEMSPAN_EXCLUDES(turn);
  // In a child of fork(): the engine can no longer be used.
  void forget_in_child();

  Mutex turn;

  // For functions that have the turn although the compiler cannot see it. Debug builds check it.
  void assert_turn() const MEMSPAN_ATTRIBUTE_(assert_capability(turn)) { OnEngine::check(); }

  // Does not watch it yet. The descriptor stays open until remove(). -1: it has none.
  Result<Id> add(int descriptor, std::shared_ptr<Source> source) MEMSPAN_REQUIRES(turn);
  // The source is called while the descriptor has one of `events`. 0: it is called once at most,
  // for its end.
  void watch(Id id, std::uint32_t events) MEMSPAN_REQUIRES(turn);
  void wake_at(Id id, Clock::time_point when) MEMSPAN_REQUIRES(turn);
  // Calls the source soon, after others had their turn.
  void call_again(Id id) MEMSPAN_REQUIRES(turn);
  // No call begins after it.
  void remove(Id id) MEMSPAN_REQUIRES(turn);
  // Wakes threads in wait() whose condition may have changed.
  void notify() MEMSPAN_REQUIRES(turn) {
    if (sleepers_ > 0) changed_.notify_all();
  }
  // Called before a thread sleeps in the set of all sources. False: there is work now, which
  // `source` handles.
  void set_prepare_sleep(Id source, std::function<bool()> prepare) MEMSPAN_REQUIRES(turn) {
    worker_ = source;
    prepare_sleep_ = std::move(prepare);
  }
  // after_turn() is to be called soon.
  void request_after_turn() MEMSPAN_REQUIRES(turn);

  // Serves all sources, `first` in the first place, until done() returns true. kTimeout at the
  // deadline; also ends for an interrupt. Others may take the turn in between.
  template <typename Done>
  Status wait(Done done, const Deadline& deadline, Id first = 0) MEMSPAN_REQUIRES(turn);

  // Serves what is ready, unless another thread does.
  void progress() override MEMSPAN_EXCLUDES(turn);
  void begin_progress() override MEMSPAN_EXCLUDES(turn);
  void end_progress() override MEMSPAN_EXCLUDES(turn);
  void rest_progress() override MEMSPAN_EXCLUDES(turn);

 private:
  friend class Turn;

  explicit Engine(std::function<void()> after_turn) : after_turn_(std::move(after_turn)) {}
  void run();
  void wait_for_work() MEMSPAN_EXCLUDES(turn);
  // Whether no other thread serves.
  bool is_served_here() const MEMSPAN_REQUIRES(turn) { return is_armed_ || waits_ == 0; }
  void acquire() MEMSPAN_ATTRIBUTE_(acquire_capability(turn));
  void release() MEMSPAN_ATTRIBUTE_(release_capability(turn));
  // Waits for another thread's notify().
  void wait_for_notice(const Deadline& deadline) MEMSPAN_REQUIRES(turn);
  bool is_interrupted_now() MEMSPAN_REQUIRES(turn);
  // Lets threads that wait for the turn have it.
  void yield() MEMSPAN_REQUIRES(turn);
  // Returns when one of the threads that wait for the turn has had it, or was too slow.
  void release_to_others() MEMSPAN_ATTRIBUTE_(release_capability(turn));
  bool serve(Id first) MEMSPAN_REQUIRES(turn);
  bool serve_ready() MEMSPAN_REQUIRES(turn);
  bool serve_again() MEMSPAN_REQUIRES(turn);
  void serve_timers() MEMSPAN_REQUIRES(turn);
  void call(Id id, std::uint32_t events) MEMSPAN_REQUIRES(turn);
  void sleep(const Deadline& deadline) MEMSPAN_REQUIRES(turn);
  bool may_sleep() MEMSPAN_REQUIRES(turn);
  // The time until work is due without an event; Duration::max(): never.
  Duration time_left() MEMSPAN_REQUIRES(turn);
  Duration kept_for() const MEMSPAN_REQUIRES(turn);
  void begin_waits() MEMSPAN_REQUIRES(turn);
  void end_waits() MEMSPAN_REQUIRES(turn);
  void arm(bool is_armed) MEMSPAN_REQUIRES(turn);
  void arm_kept() MEMSPAN_REQUIRES(turn);

  // The descriptors that a child of fork() must give up, which reads them without a lock. Entries
  // stay, and are used again.
  struct Booked {
    std::atomic<int> descriptor;  // -1: free
    Booked* const next;
  };
  void book(int descriptor) MEMSPAN_REQUIRES(turn);
  void unbook(int descriptor) MEMSPAN_REQUIRES(turn);

  struct Entry {
    int descriptor;
    std::shared_ptr<Source> source;
    std::uint32_t events = 0;
  };
  Fd outer_;  // with inner_ and wake_
  Fd inner_;  // with all sources
  WakeEvent wake_;
  std::atomic<bool> ends_{false};
  bool is_forgotten_ = false;
  std::atomic<Booked*> booked_{nullptr};
  const std::function<void()> after_turn_;
  std::atomic<int> wanted_{0};  // threads that wait for the turn
  std::atomic<std::uint64_t> turns_{0};
  ConditionVariable changed_;
  std::unordered_map<Id, Entry> entries_ MEMSPAN_GUARDED_BY(turn);
  std::multimap<Clock::time_point, Id> timers_ MEMSPAN_GUARDED_BY(turn);
  std::vector<Id> again_ MEMSPAN_GUARDED_BY(turn);
  std::function<bool()> prepare_sleep_ MEMSPAN_GUARDED_BY(turn);
  Id worker_ MEMSPAN_GUARDED_BY(turn) = 0;
  Id last_id_ MEMSPAN_GUARDED_BY(turn) = 0;
  Id speaker_ MEMSPAN_GUARDED_BY(turn) = 0;  // the source that was ready last
  int rounds_ MEMSPAN_GUARDED_BY(turn) = 0;
  int sleepers_ MEMSPAN_GUARDED_BY(turn) = 0;         // threads in wait() that do not serve
  bool is_led_ MEMSPAN_GUARDED_BY(turn) = false;      // a thread in wait() serves
  bool is_polled_ MEMSPAN_GUARDED_BY(turn) = false;   // the holder of the turn is in progress()
  AdaptiveSpin spin_ MEMSPAN_GUARDED_BY(turn){true};  // of that thread
  // The last waits: how many began soon after the previous one, since when and until when.
  int waits_ MEMSPAN_GUARDED_BY(turn) = 0;
  int soon_again_ MEMSPAN_GUARDED_BY(turn) = 0;
  Clock::time_point waited_since_ MEMSPAN_GUARDED_BY(turn);
  Clock::time_point waited_until_ MEMSPAN_GUARDED_BY(turn);
  bool is_armed_ MEMSPAN_GUARDED_BY(turn) = true;
  bool is_kept_ MEMSPAN_GUARDED_BY(turn) = false;  // disarmed although no thread waits
  std::thread thread_;
};

// The right to touch connections. A thread has it once at most, and does not wait with it except in
// Engine::wait().
class MEMSPAN_ATTRIBUTE_(scoped_lockable) Turn {
 public:
  explicit Turn(Engine& engine) MEMSPAN_ATTRIBUTE_(acquire_capability(engine.turn))
      : engine_(engine) {
    engine_.acquire();
  }
  ~Turn() MEMSPAN_ATTRIBUTE_(release_capability()) { engine_.release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Engine& engine_;
};

template <typename Done>
Status Engine::wait(Done done, const Deadline& deadline, Id first) {
  if (done()) return Status::ok();
  begin_waits();
  Status ended;
  while (ended.is_ok()) {
    if (is_led_) {
      wait_for_notice(deadline.within(kLongestSleep));
    } else {
      is_led_ = true;
      const bool served = spin_.wait([&] {
        assert_turn();
        if (serve(first)) return true;
        yield();
        return done();
      });
      if (!served && !done()) sleep(deadline);
      // A carrier that always has work, or cannot sleep, would keep the turn from timers.
      if (wanted_.load(std::memory_order_relaxed) > 0 && !done()) {
        release_to_others();
        acquire();
      }
      is_led_ = false;
    }
    if (done()) break;
    if (deadline.has_passed())
      ended = Status(Code::kTimeout, "it has not come in time");
    else if (is_interrupted_now())
      ended = interruption();
  }
  end_waits();
  notify();  // another thread serves
  return ended;
}

}  // namespace memspan::inline transport
