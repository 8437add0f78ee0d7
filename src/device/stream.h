// SPDX-License-Identifier: Apache-2.0
// An ordered queue of work: the host device's stream. A thread of its own does the work. A thread
// that waits without a limit does it instead if the stream's thread is not awake yet. To be woken
// takes longer than most works.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

class Stream;

// The stream whose work this thread does, or null. A thread that does a part of a work sets it.
const Stream* current_stream();
// Returns the previous one.
const Stream* set_current_stream(const Stream* stream);

// Thread-safe. The destructor waits until all work is done.
class Stream : NotCopyable {
 public:
  using Work = std::function<Status()>;

  ~Stream();

  // Does it after all work submitted before. The first call starts the thread: kSystem if it cannot
  // start.
  Status submit(Work work) MEMSPAN_EXCLUDES(mutex_);
  bool is_idle() const MEMSPAN_EXCLUDES(mutex_);
  // Whether the caller is work of this stream. Such work must not wait for it or destroy it.
  bool is_own_work() const MEMSPAN_EXCLUDES(mutex_);
  // Waits until all work submitted before this call is done. kTimeout changes nothing;
  // kInvalidArgument: the caller is work of this stream. Otherwise returns the first failure of
  // that work since the last synchronisation, and forgets it.
  Status synchronize(Deadline deadline) MEMSPAN_EXCLUDES(mutex_);

 private:
  void run() MEMSPAN_EXCLUDES(mutex_);
  void do_next() MEMSPAN_REQUIRES(mutex_);
  bool is_caller_own() const MEMSPAN_REQUIRES(mutex_);

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Work> queue_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t submitted_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  Status first_failure_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t failed_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // the first failure's number
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  bool is_idle_ MEMSPAN_GUARDED_BY(mutex_) = false;  // the thread sleeps
  int sleepers_ MEMSPAN_GUARDED_BY(mutex_) = 0;      // it, and threads that wait for work
  std::optional<std::thread> thread_ MEMSPAN_GUARDED_BY(mutex_);
  std::thread::id worker_ MEMSPAN_GUARDED_BY(mutex_);  // the thread that does a work now
};

// A place in a stream's work that others wait for: the host device's event. Thread-safe. It may be
// destroyed before its recorded places are reached or its waits end.
class Event {
 public:
  // Records the place behind all work already submitted to the stream; replaces the last place.
  Status record(Stream& stream);
  // Makes the stream's later work wait for the place recorded last, if any.
  Status hold(Stream& stream) const;
  bool is_over() const;
  // Waits until the place recorded last is reached. kTimeout changes nothing.
  Status synchronize(Deadline deadline) const;

 private:
  struct State {
    mutable Mutex mutex;
    ConditionVariable changed;
    std::uint64_t recorded MEMSPAN_GUARDED_BY(mutex) = 0;
    std::uint64_t reached MEMSPAN_GUARDED_BY(mutex) = 0;  // the last of the places reached
  };
  static Status await(State& state, std::uint64_t place, Deadline deadline);
  std::uint64_t last() const;

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace memspan
