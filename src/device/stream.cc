// SPDX-License-Identifier: Apache-2.0
#include "device/stream.h"

#include <fmt/format.h>

#include <utility>

#include "core/interrupt.h"
#include "core/thread.h"

namespace memspan {
namespace {

thread_local const Stream* current = nullptr;

}  // namespace

const Stream* current_stream() {
  return current;
}

const Stream* set_current_stream(const Stream* stream) {
  return std::exchange(current, stream);
}

Stream::~Stream() {
  std::optional<std::thread> thread;
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    thread = std::exchange(thread_, std::nullopt);
  }
  changed_.notify_all();
  if (thread) thread->join();
}

Status Stream::submit(Work work) {
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

bool Stream::is_idle() const {
  MutexLock lock(mutex_);
  return done_ == submitted_;
}

bool Stream::is_own_work() const {
  MutexLock lock(mutex_);
  return is_caller_own();
}

// The thread may do another stream's work within this one's.
bool Stream::is_caller_own() const {
  return current == this || worker_ == std::this_thread::get_id();
}

Status Stream::synchronize(Deadline deadline) {
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

// Call when no thread does a work and the queue is not empty.
void Stream::do_next() {
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

void Stream::run() {
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

Status Event::record(Stream& stream) {
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

Status Event::hold(Stream& stream) const {
  const std::uint64_t place = last();
  if (is_over()) return Status::ok();
  return stream.submit([state = state_, place] { return await(*state, place, Deadline::never()); });
}

bool Event::is_over() const {
  MutexLock lock(state_->mutex);
  return state_->reached >= state_->recorded;
}

Status Event::synchronize(Deadline deadline) const {
  return await(*state_, last(), deadline);
}

std::uint64_t Event::last() const {
  MutexLock lock(state_->mutex);
  return state_->recorded;
}

Status Event::await(State& state, std::uint64_t place, Deadline deadline) {
  MutexLock lock(state.mutex);
  while (state.reached < place)
    if (!wait_interruptibly(state.changed, state.mutex, deadline) && state.reached < place)
      return end_of_wait("timeout: the event has not been reached yet");
  return Status::ok();
}

}  // namespace memspan
