// SPDX-License-Identifier: Apache-2.0
// Lets a language binding end the waits of its own thread, as Python does for Ctrl-C.
//
// A thread may have an interrupt handler (memspan/memspan.h). A wait of that thread calls it every
// kInterruptPeriod, without the locks that the wait uses. Once the handler returns nonzero, all
// waits of the thread end until a handler is set again. Threads without a handler sleep without
// this limit. The only thread of the library that has one is an endpoint's: the endpoint's end ends
// what that thread waits for. EndsWith ends the waits of calls whose object another thread
// destroys.
#pragma once

#include <poll.h>

#include <atomic>
#include <optional>
#include <span>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"

namespace memspan::inline core {

// Not 0: the call must end.
using InterruptHandler = int (*)();

// People perceive a tenth of a second as immediate, and the handler may have to wait for a lock of
// its own.
inline constexpr auto kInterruptPeriod = std::chrono::milliseconds(40);

// Sets the calling thread's handler and returns the previous one.
InterruptHandler set_thread_interrupt_handler(InterruptHandler handler);
bool is_interruptible();  // the thread has a handler, or an EndsWith

// While it lives, waits of this thread also end once the flag is set; `why` is the failure's text.
// Both must outlive it.
class EndsWith : NotCopyable {
 public:
  EndsWith(const std::atomic<bool>& flag, const char* why);
  ~EndsWith();

 private:
  const std::atomic<bool>* const outer_flag_;
  const char* const outer_why_;
};

// Calls the handler if it is due. Do not hold a lock that other threads take in calls of the
// library: they may hold the lock that the handler waits for.
bool is_interrupted();
// Releases the mutex while it calls the handler.
bool is_interrupted(Mutex& held) MEMSPAN_REQUIRES(held);
// The end of the next sleep, early enough for the next call of the handler.
Deadline until_next_look(const Deadline& deadline);
// Like changed.wait_until(mutex, deadline); also returns false if the thread is interrupted.
bool wait_interruptibly(ConditionVariable& changed, Mutex& mutex, const Deadline& deadline)
    MEMSPAN_REQUIRES(mutex);
// Why such a wait ended: the interruption, or kTimeout with `on_timeout`.
Status end_of_wait(std::string on_timeout);
// The failure of a call that was interrupted: kSystem.
Status interruption();
// poll(2) for a thread that has nothing else to do: returns once a descriptor is ready; `revents`
// say which. kTimeout with the text `on_timeout`, the interruption, or kSystem.
Status poll_ready(std::span<pollfd> polled, const Deadline& deadline, const char* on_timeout);

// A value that one thread sets and another awaits. Shared by both, because either may be done with
// it first. Thread-safe.
template <typename T>
class AwaitedValue {
 public:
  void set(T value) {
    MutexLock lock(mutex_);
    value_.emplace(std::move(value));
    changed_.notify_all();
  }
  // nullopt at the deadline, or if the thread is interrupted. Gives the value away.
  std::optional<T> wait(const Deadline& deadline) {
    MutexLock lock(mutex_);
    while (!value_ && wait_interruptibly(changed_, mutex_, deadline)) continue;
    return std::exchange(value_, std::nullopt);
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<T> value_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::inline core
