// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the host for copies in a GPU's streams. The driver takes other memory of the
// host at once, before the stream has come to the copy, or waits for the stream within the call.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "core/mutex.h"
#include "core/status.h"
#include "device/cuda/driver.h"

namespace memspan::cuda {

// Buffers that are used again, as pinning costs a system call and more. Thread-safe. Lives as long
// as the process.
class PinnedMemory {
 public:
  // At least so many bytes until the last owner releases them, which may be a call of a stream. The
  // device's context must be current. kOutOfMemory names the size.
  Result<std::shared_ptr<std::byte>> take(const Device& device, std::size_t bytes)
      MEMSPAN_EXCLUDES(mutex_);

 private:
  void give_back(std::byte* base, std::size_t bytes) MEMSPAN_EXCLUDES(mutex_);
  void trim(const Device& device) MEMSPAN_REQUIRES(mutex_);

  Mutex mutex_;
  std::multimap<std::size_t, std::byte*> idle_ MEMSPAN_GUARDED_BY(mutex_);  // by their bytes
  std::size_t idle_bytes_ MEMSPAN_GUARDED_BY(mutex_) = 0;
};

}  // namespace memspan::cuda
