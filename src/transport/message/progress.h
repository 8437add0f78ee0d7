// SPDX-License-Identifier: Apache-2.0
// The progress thread: it sleeps in epoll and calls the clients that have events. A thread that
// waits for peers takes over the clients that were ready last: it polls them itself, and they do
// not wake the progress thread. Two threads for one message cost more than the message.
//
// A thread that waits repeatedly keeps the clients between its waits. Otherwise events for its next
// wait would wake the progress thread. That thread checks from time to time and takes the clients
// back when the waits have ended. The longer they lasted, the later it checks: an event after the
// last wait is delayed by an eighth of their time, at most 1 ms.
//
// A client is watched for one event at a time (EPOLLONESHOT): after on_ready() it asks to be
// watched again. So no two threads serve one client by accident, and a client that another thread
// serves wakes no thread.
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
  // `events` of epoll, or 0: the time of wake_at() has come. Any thread that makes progress calls
  // it.
  virtual void on_ready(std::uint32_t events) = 0;
  // Whether on_ready(EPOLLIN | EPOLLOUT) may be called at any time, whatever is ready.
  virtual bool can_be_asked() const { return false; }
};

// The descriptors that a child of fork() must give up, readable without a lock. Thread-safe.
class DescriptorBook {
 public:
  void add(int descriptor);
  void remove(int descriptor);
  // In a child: replaces them by /dev/null. So no peer mistakes the child for this process, and
  // their owners may still close them.
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

  // Does not watch it yet. The descriptor stays open until remove().
  Result<Id> add(int descriptor, std::shared_ptr<PollClient> client);
  // Waits for the next of `events` (EPOLLIN, EPOLLOUT, EPOLLRDHUP); always reports an end. If the
  // client was taken over, the wait begins when it is given back.
  void watch(Id id, std::uint32_t events);
  void wake_at(Id id, Clock::time_point when);
  // No call begins after it; one may still run.
  void remove(Id id);

  // Serves the clients that were taken over, or all ready ones if there are no such clients.
  void poll();
  void begin_polling();
  void end_polling();
  // For a thread that is about to wait for one peer and will not poll: gives the clients back to
  // the progress thread. Otherwise two processes that wait for each other would wait forever.
  void give_back();
  // Whether this thread is in an on_ready(). Then it must not wait for a peer.
  static bool is_serving();
  void forget_in_child();
  void stop();

 private:
  Progress() = default;
  void run();
  // Returns whether there was an event. Only the progress thread resets its wake event: otherwise
  // it would sleep through a timer that it has not seen.
  enum class Server { kThread, kCaller };
  bool serve(Server server, Duration limit);
  void serve_timers();
  // The time until work is due without an event; Duration::max(): never.
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
  std::vector<Id> speakers_ MEMSPAN_GUARDED_BY(mutex_);  // ready last, latest first
  std::vector<Id> taken_ MEMSPAN_GUARDED_BY(mutex_);     // the speakers that threads poll
  std::atomic<bool> has_taken_{false};
  int pollers_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  // The last waits: how many began soon after the previous one, since when and until when.
  int soon_again_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  Clock::time_point polled_since_ MEMSPAN_GUARDED_BY(mutex_);
  Clock::time_point polled_until_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_kept_ MEMSPAN_GUARDED_BY(mutex_) = false;  // the thread checks for the end of the waits
  std::thread thread_;
};

}  // namespace memspan
