// SPDX-License-Identifier: Apache-2.0
// The progress thread: it sleeps in epoll and calls whoever has something to do. A thread that
// waits for peers takes the clients that spoke last over: it asks them itself, and the progress
// thread is not woken for them. Two threads on the way of one message cost more than the message.
//
// A thread that waits again and again keeps the clients between its waits, too: with each wait the
// progress thread would be woken for what the next one takes. That thread looks now and then, and
// has the clients again when the waits have ended. The longer they went on, the later it looks:
// what comes after the last one is delayed by an eighth of their time, and by 1 ms at most.
//
// A client is watched for one event at a time (EPOLLONESHOT): after on_ready() it is watched again
// when it says so. That way no two threads serve the same client by accident, and a client that
// others serve wakes nobody.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/adaptive_spin.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/wake_event.h"

namespace memspan {

class PollClient {
 public:
  virtual ~PollClient() = default;
  // `events` of epoll, or 0: the time of wake_at() has come. Any thread that makes progress.
  virtual void on_ready(std::uint32_t events) = 0;
  // Whether on_ready(EPOLLIN | EPOLLOUT) may be called as often as somebody likes, whatever is
  // ready.
  virtual bool can_be_asked() const { return false; }
};

// The descriptors that a child of fork() has to give up, readable without a lock. Thread-safe.
class DescriptorBook {
 public:
  void add(int descriptor);
  void remove(int descriptor);
  // In a child: they become descriptors of /dev/null, so that nobody takes the child for this
  // process, and whoever owns them may close them.
  void give_up_in_child();

 private:
  static constexpr std::size_t kEach = 256;
  struct Page {
    std::array<std::atomic<int>, kEach> numbers;  // -1: free
    std::atomic<Page*> next{nullptr};
    Page();
    ~Page() { delete next.load(); }
  };
  Page first_;
};

// Thread-safe.
class Progress {
 public:
  using Id = std::uint64_t;

  static Result<std::unique_ptr<Progress>> start();
  // Ends the thread.
  ~Progress();

  // Watches nothing yet. The descriptor stays open until remove().
  Result<Id> add(int descriptor, std::shared_ptr<PollClient> client);
  // Waits for the next of `events` (EPOLLIN, EPOLLOUT, EPOLLRDHUP); an end is always told. Of a
  // client that was taken over: from the end of that.
  void watch(Id id, std::uint32_t events);
  void wake_at(Id id, Clock::time_point when);
  // No call begins after it; one may still run.
  void remove(Id id);

  // Serves what is ready now; between begin_polling() and end_polling(), of the clients taken over.
  void poll();
  void begin_polling();
  void end_polling();
  // Before a thread waits for one peer, and so does not poll for a while: the progress thread has
  // the clients again, or two processes that wait for each other would wait for ever.
  void give_back();
  // Whether this thread is in an on_ready(): it must not wait for a peer then.
  static bool is_serving();
  void forget_in_child();
  void stop();

 private:
  Progress() = default;
  void run();
  // True when there was something. What wakes the thread is its own: another one that serves leaves
  // it, or the thread would sleep through a timer that it has not seen.
  enum class Server { kThread, kCaller };
  bool serve(Server server, Duration limit);
  void serve_timers();
  // Until there is something to do without an event; Duration::max(): never.
  Duration time_left();
  void give_back_kept();
  Duration kept_for() const MEMSPAN_REQUIRES(mutex_);
  void call(Server server, Id id, std::uint32_t events);

  struct Client {
    int descriptor;
    std::shared_ptr<PollClient> client;
    std::uint32_t events = 0;  // that it waits for
    bool is_taken = false;
  };
  void arm(Id id, const Client& client, std::uint32_t events) MEMSPAN_REQUIRES(mutex_);
  void note_speaker(Id id) MEMSPAN_REQUIRES(mutex_);
  void arm_one(Id id) MEMSPAN_REQUIRES(mutex_);
  void arm_taken() MEMSPAN_REQUIRES(mutex_);
  struct Timer {
    Clock::time_point when;
    Id id;
  };
  Fd epoll_;
  WakeEvent wake_;
  std::atomic<bool> ends_{false};
  bool is_forgotten_ = false;
  DescriptorBook book_;
  Mutex mutex_;
  std::unordered_map<Id, Client> clients_ MEMSPAN_GUARDED_BY(mutex_);
  std::vector<Timer> timers_ MEMSPAN_GUARDED_BY(mutex_);
  Id last_id_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::vector<Id> speakers_ MEMSPAN_GUARDED_BY(mutex_);  // who was ready last, latest first
  std::vector<Id> taken_ MEMSPAN_GUARDED_BY(mutex_);     // of the speakers, while it is polled
  std::atomic<bool> has_taken_{false};
  int pollers_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  // The last waits of threads: how many began soon after the one before, since when, and until
  // when.
  int soon_again_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  Clock::time_point polled_since_ MEMSPAN_GUARDED_BY(mutex_);
  Clock::time_point polled_until_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_kept_ MEMSPAN_GUARDED_BY(mutex_) = false;  // the thread looks whether the waits go on
  std::thread thread_;
};

}  // namespace memspan
