// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed exactly once.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace memspan {

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

}  // namespace memspan
