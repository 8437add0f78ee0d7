// SPDX-License-Identifier: Apache-2.0
#include "device/event.h"

#include <algorithm>

#include "core/interrupt.h"

namespace memspan {

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
