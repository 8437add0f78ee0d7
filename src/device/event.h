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

// Thread-safe. It may be destroyed before its recorded places are reached or its waits end.
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
