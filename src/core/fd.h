// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed exactly once.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "core/status.h"

namespace memspan::inline core {

// Move-only value. -1 means none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int descriptor) : descriptor_(descriptor) {}
  Fd(Fd&& other) noexcept : descriptor_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return descriptor_; }
  bool is_valid() const { return descriptor_ >= 0; }
  // Gives the descriptor away.
  int release() { return std::exchange(descriptor_, -1); }
  void reset(int descriptor = -1) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = descriptor;
  }

 private:
  int descriptor_ = -1;
};

// A duplicate of the descriptor; invalid, with errno, if it cannot be made.
inline Fd duplicate(int descriptor) {
  return Fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}
// The same; `doing` begins the message of the failure.
inline Result<Fd> duplicate(int descriptor, std::string_view doing) {
  Fd made = duplicate(descriptor);
  if (!made.is_valid()) return Status::from_errno(doing);
  return made;
}

// Writes all of it to the descriptor: 0 or an errno. Safe in a signal handler.
inline int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// A descriptor (an eventfd) that other threads make readable to wake the thread that polls it.
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

}  // namespace memspan::inline core
