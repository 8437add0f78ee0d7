// SPDX-License-Identifier: Apache-2.0
// An event loop: one thread, asleep in epoll, that calls back when a descriptor is ready, when a
// timer expires, or as soon as it can.
//
// process_singleton() is the loop that serves a process's control sockets (descriptor brokers,
// process watches). Callbacks run one at a time on the loop's thread and must not wait: neither for
// another callback nor for a peer. They may call everything here, cancel() of themselves included.
//
// A child of fork() has no such thread. There process_singleton() gives a new loop, and every call
// on a loop of the parent does nothing or says kForked, so that the parent's loop is not disturbed.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/status.h"

namespace memspan {

// Thread-safe. Destruction cancels everything and ends the thread; it may happen in a callback.
class EventLoop {
 public:
  // Starts the thread; `whose` completes "the thread of ..." in messages.
  static Result<std::shared_ptr<EventLoop>> start(std::string_view whose);
  // The loop of this process, begun at the first call. Owners: all who use it. It ends with the
  // last of them.
  static Result<std::shared_ptr<EventLoop>> process_singleton();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Names a callback until it is over; 0 names none.
  using Token = std::uint64_t;

  // Calls `ready` with what happened (EPOLLIN, EPOLLOUT, always EPOLLHUP and EPOLLERR) as long as
  // one of `events` holds. The descriptor is borrowed: cancel() comes before its close. Fails when
  // the descriptor is watched already or cannot be (kSystem).
  using Ready = std::function<void(std::uint32_t events)>;
  Result<Token> watch(int descriptor, std::uint32_t events, Ready ready);
  // Calls once, not before `when`.
  Token call_at(Clock::time_point when, std::function<void()> call);
  // Calls once, as soon as the thread is free.
  Token call_soon(std::function<void()> call) {
    return call_at(Clock::time_point::min(), std::move(call));
  }
  // No call of it runs or begins after this returned. On the loop's own thread a call that is
  // running goes on: it is the caller. What the callback holds is released.
  void cancel(Token token);

  // Returns when the call that runs, if any, has returned; at once on the loop's own thread.
  void finish_running_call();

  bool is_this_thread() const;

 private:
  class State;
  explicit EventLoop(std::shared_ptr<State> state);
  const std::shared_ptr<State> state_;  // owners: this and the thread
};

}  // namespace memspan
