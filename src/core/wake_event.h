// SPDX-License-Identifier: Apache-2.0
// A descriptor (an eventfd) that other threads make readable to wake the thread that polls it.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// Owns the descriptor; a default-constructed one has none. Move-only value; const use is
// thread-safe and never blocks.
class WakeEvent {
 public:
  WakeEvent() = default;
  static Result<WakeEvent> create() {
    WakeEvent made;
    made.descriptor_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made.is_valid()) return Status::from_errno("eventfd");
    return made;
  }

  bool is_valid() const { return descriptor_.is_valid(); }
  int descriptor() const { return descriptor_.get(); }
  // Makes the descriptor readable until silence().
  void ring() const {
    const std::uint64_t one = 1;
    // The write fails only if the counter is full, and then the descriptor is readable.
    [[maybe_unused]] const auto written = ::write(descriptor_.get(), &one, sizeof one);
  }
  void silence() const {
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto got = ::read(descriptor_.get(), &rung, sizeof rung);
  }

 private:
  Fd descriptor_;
};

}  // namespace memspan
