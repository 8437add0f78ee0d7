// SPDX-License-Identifier: Apache-2.0
// A place in a stream's work that others wait for: the host device's event.
#pragma once

#include <cstdint>
#include <memory>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "device/stream.h"

namespace memspan {

// Thread-safe. May end before what was recorded or waits.
class Event {
 public:
  // It stands behind what was given to the stream before, from now on and instead of where it was.
  Status record(Stream& stream);
  // The stream's later work comes after the place recorded last; at once where none was.
  Status hold(Stream& stream) const;
  bool is_over() const;
  // Until the place recorded last is reached. kTimeout leaves all as it is.
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
