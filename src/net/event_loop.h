// SPDX-License-Identifier: Apache-2.0
// An event loop: one thread, asleep in epoll, that calls back when a descriptor is ready, when a
// timer expires, or as soon as it can. One that is made without a thread is run by its owner.
//
// process_singleton() is the loop that serves a process's control sockets (descriptor brokers,
// process watches). Callbacks run one at a time on the loop's thread and must not wait for another
// callback or a peer. They may call any function here, also cancel() on themselves.
//
// A child of fork() lacks this thread. There process_singleton() returns a new loop. Calls on a
// loop of the parent do nothing or return kForked, and do not disturb the parent.
#pragma once

#include <sys/epoll.h>

#include <functional>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "core/fd.h"
#include "core/mutex.h"

namespace memspan::inline net {

// Thread-safe. The end of the last owner cancels everything and ends the thread; it may happen in a
// callback.
class EventLoop : NotCopyable {
 public:
  // Handles an exception of a callback, on the loop's thread. Must not throw.
  using Failed = std::function<void(const std::exception&)>;

  // Starts the thread; `whose` completes "the thread of ..." in messages. Without `failed`, an
  // exception ends the process.
  static Result<std::shared_ptr<EventLoop>> start(std::string_view whose, Failed failed = {});
  // For this thread, which calls run_once().
  static Result<std::shared_ptr<EventLoop>> without_thread();
  // Waits until the deadline for something to call, and calls all that is ready. False: nothing
  // was.
  bool run_once(const Deadline& deadline);
  // The loop of this process, started at the first call. Owners: all its users. It ends with the
  // last of them.
  static Result<std::shared_ptr<EventLoop>> process_singleton();
  ~EventLoop() = default;
  // Cancels everything and ends the thread; not in a callback. It allocates no memory. False in a
  // child of fork(), which has not the thread.
  bool stop();

  // Identifies a callback until it ends; 0 identifies no callback.
  using Token = std::uint64_t;

  // Calls `ready` with the events that occurred (EPOLLIN, EPOLLOUT, always EPOLLHUP and EPOLLERR)
  // while one of `events` holds. The descriptor is borrowed: call cancel() before you close it.
  // Fails with kSystem if the descriptor is already watched or cannot be.
  using Ready = std::function<void(std::uint32_t events)>;
  Result<Token> watch(int descriptor, std::uint32_t events, Ready ready);
  // Other events of that descriptor; 0 for none but EPOLLHUP and EPOLLERR.
  void change(Token token, std::uint32_t events);
  // Calls once, not before `when`.
  Token call_at(Clock::time_point when, std::function<void()> call);
  // Calls once, as soon as the thread is free.
  Token call_soon(std::function<void()> call) {
    return call_at(Clock::time_point::min(), std::move(call));
  }
  // After it returns, the callback neither runs nor begins. A running callback that cancels itself
  // on the loop's thread continues. Releases what the callback holds.
  void cancel(Token token);

  // Waits until the running callback, if any, has returned; returns at once on the loop's thread.
  void finish_running_call();

  bool is_this_thread() const { return std::this_thread::get_id() == runner_; }

 private:
  struct Entry {
    int descriptor = -1;  // -1: a timer
    Clock::time_point when = {};
    std::shared_ptr<Ready> call;  // owners: this and a call that runs
  };

  EventLoop() = default;
  static Result<std::shared_ptr<EventLoop>> make();
  // The last owner's end cancels everything and ends the thread, which also owns the loop.
  static std::shared_ptr<EventLoop> owned(std::shared_ptr<EventLoop> loop);
  // False in a child of fork().
  bool is_of_this_process() const { return process_ == getpid(); }
  Status control(int operation, int descriptor, std::uint32_t events, Token token) const;
  Entry extract(Token token) MEMSPAN_REQUIRES(mutex_);
  void run() MEMSPAN_EXCLUDES(mutex_);
  int time_to_next_timer(const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  std::vector<Token> expired_timers() MEMSPAN_EXCLUDES(mutex_);
  bool call(Token token, std::uint32_t events) MEMSPAN_EXCLUDES(mutex_);

  const pid_t process_ = getpid();
  Fd epoll_;
  WakeEvent wake_;  // token 0
  std::thread thread_;
  std::thread::id runner_ = std::this_thread::get_id();  // the thread that calls
  Failed failed_;
  Mutex mutex_;
  ConditionVariable finished_;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Token last_token_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  Token running_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t calls_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::map<Token, Entry> entries_ MEMSPAN_GUARDED_BY(mutex_);
  std::set<std::pair<Clock::time_point, Token>> timers_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::inline net
