// SPDX-License-Identifier: Apache-2.0
// An ordered queue of work: the host device's stream. A thread of its own does the work. A thread
// that waits without a limit does it instead if the stream's thread is not awake yet. To be woken
// takes longer than most works.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "core/interrupt.h"
#include "core/thread.h"

namespace memspan::inline device {

class Stream;

// The stream whose work this thread does, or null. A thread that does a part of a work sets it.
inline constinit thread_local const Stream* stream_of_this_thread = nullptr;
inline const Stream* current_stream() {
  return stream_of_this_thread;
}
// Returns the previous one.
inline const Stream* set_current_stream(const Stream* stream) {
  return std::exchange(stream_of_this_thread, stream);
}

// Thread-safe. The destructor waits until all work is done.
class Stream : NotCopyable {
 public:
  using Work = std::function<Status()>;

  ~Stream() {
    std::optional<std::thread> thread;
    {
      MutexLock lock(mutex_);
      is_ending_ = true;
      thread = std::exchange(thread_, std::nullopt);
    }
    changed_.notify_all();
    if (thread) thread->join();
  }

  // Does it after all work submitted before. The first call starts the thread: kSystem if it cannot
  // start.
  Status submit(Work work) MEMSPAN_EXCLUDES(mutex_) {
    bool is_asleep = false;
    {
      MutexLock lock(mutex_);
      if (!thread_) {
        MEMSPAN_PASS_ASSIGN(thread_, start_thread("a stream", [this] { run(); }));
      }
      queue_.push_back(std::move(work));
      ++submitted_;
      is_asleep = is_idle_;
    }
    if (is_asleep) changed_.notify_all();
    return Status::ok();
  }
  bool is_idle() const MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return done_ == submitted_;
  }
  // Whether the caller is work of this stream. Such work must not wait for it or destroy it.
  bool is_own_work() const MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return is_caller_own();
  }
  // Waits until all work submitted before this call is done. kTimeout changes nothing;
  // kInvalidArgument: the caller is work of this stream. Otherwise returns the first failure of
  // that work since the last synchronisation, and forgets it.
  Status synchronize(Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (is_caller_own())
      return {Code::kInvalidArgument, "work of a stream cannot wait for the stream"};
    const std::uint64_t last = submitted_;
    while (done_ < last) {
      // A work may exceed a caller's limit, and it does not notice an interruption.
      if (deadline.is_never() && !is_interruptible() && worker_ == std::thread::id()) {
        do_next();
        continue;
      }
      ++sleepers_;
      const bool is_in_time = wait_interruptibly(changed_, mutex_, deadline);
      --sleepers_;
      if (!is_in_time && done_ < last)
        return end_of_wait(
            fmt::format("timeout: {} of the stream's works are not done yet", last - done_));
    }
    if (first_failure_.is_ok() || failed_ > last) return Status::ok();
    return std::exchange(first_failure_, Status::ok());
  }

 private:
  void run() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!queue_.empty() || !is_ending_) {
      if (!queue_.empty() && worker_ == std::thread::id()) {
        do_next();
        continue;
      }
      is_idle_ = true;
      ++sleepers_;
      changed_.wait_until(mutex_, Deadline::never());
      --sleepers_;
      is_idle_ = false;
    }
  }
  // Call when no thread does a work and the queue is not empty.
  void do_next() MEMSPAN_REQUIRES(mutex_) {
    worker_ = std::this_thread::get_id();
    Work work = std::move(queue_.front());
    queue_.pop_front();
    mutex_.unlock();
    const Stream* const before = set_current_stream(this);
    Status status = caught(work);
    work = nullptr;  // releases what it held before other threads learn that it is done
    set_current_stream(before);
    mutex_.lock();
    worker_ = {};
    ++done_;
    if (!status.is_ok() && first_failure_.is_ok()) {
      first_failure_ = std::move(status);
      failed_ = done_;
    }
    if (sleepers_ != 0) changed_.notify_all();
  }
  // The thread may do another stream's work within this one's.
  bool is_caller_own() const MEMSPAN_REQUIRES(mutex_) {
    return current_stream() == this || worker_ == std::this_thread::get_id();
  }

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
  Status record(Stream& stream) {
    std::uint64_t place = 0;
    {
      MutexLock lock(state_->mutex);
      place = ++state_->recorded;
    }
    const auto reach = [place](State& state) {
      {
        MutexLock lock(state.mutex);
        state.reached = std::max(state.reached, place);
      }
      state.changed.notify_all();
    };
    Status given = stream.submit([reach, state = state_] {
      reach(*state);
      return Status::ok();
    });
    // The place is never reached, so no thread may wait for it.
    if (!given.is_ok()) reach(*state_);
    return given;
  }
  // Makes the stream's later work wait for the place recorded last, if any.
  Status hold(Stream& stream) const {
    const std::uint64_t place = last();
    if (is_over()) return Status::ok();
    return stream.submit(
        [state = state_, place] { return await(*state, place, Deadline::never()); });
  }
  bool is_over() const {
    MutexLock lock(state_->mutex);
    return state_->reached >= state_->recorded;
  }
  // Waits until the place recorded last is reached. kTimeout changes nothing.
  Status synchronize(Deadline deadline) const { return await(*state_, last(), deadline); }

 private:
  struct State {
    mutable Mutex mutex;
    ConditionVariable changed;
    std::uint64_t recorded MEMSPAN_GUARDED_BY(mutex) = 0;
    std::uint64_t reached MEMSPAN_GUARDED_BY(mutex) = 0;  // the last of the places reached
  };
  static Status await(State& state, std::uint64_t place, Deadline deadline) {
    MutexLock lock(state.mutex);
    while (state.reached < place)
      if (!wait_interruptibly(state.changed, state.mutex, deadline) && state.reached < place)
        return end_of_wait("timeout: the event has not been reached yet");
    return Status::ok();
  }
  std::uint64_t last() const {
    MutexLock lock(state_->mutex);
    return state_->recorded;
  }

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace memspan::inline device
