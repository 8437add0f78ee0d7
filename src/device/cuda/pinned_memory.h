// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the host for copies in a GPU's streams. The driver takes other memory of the
// host at once, before the stream has come to the copy, or waits for the stream within the call.
#pragma once

#include <array>
#include <bit>

#include "core/mutex.h"
#include "core/status.h"
#include "device/cuda/driver.h"

namespace memspan::cuda {

// Buffers that are used again, as pinning costs a system call and more. Thread-safe. Lives as long
// as the process.
class PinnedMemory {
 public:
  // Copies of more bytes pass through a buffer of this size in parts.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

  // At least so many bytes, of at most kMostBytes, until the last owner releases them, which may be
  // a call of a stream. The device's context must be current. kOutOfMemory names the size.
  Result<std::shared_ptr<std::byte>> take(const Device& device, std::size_t bytes)
      MEMSPAN_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kLeastBytes = 4096;  // a page
  static constexpr std::size_t kSizes = std::bit_width(kMostBytes / kLeastBytes);

  // At the beginning of an idle buffer, so that giving it back allocates nothing.
  struct Idle {
    Idle* next;
  };
  std::byte* take_idle(std::size_t size) MEMSPAN_EXCLUDES(mutex_);
  void give_back(std::byte* base, std::size_t size) MEMSPAN_EXCLUDES(mutex_);
  // Releases all idle buffers if they are too many.
  void trim(const Device& device) MEMSPAN_EXCLUDES(mutex_);

  Mutex mutex_;
  // By size: kLeastBytes, twice as many, and so on.
  std::array<Idle*, kSizes> idle_ MEMSPAN_GUARDED_BY(mutex_){};
  std::size_t idle_bytes_ MEMSPAN_GUARDED_BY(mutex_) = 0;
};

}  // namespace memspan::cuda
