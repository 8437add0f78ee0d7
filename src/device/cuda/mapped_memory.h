// SPDX-License-Identifier: Apache-2.0
// GPU memory that is handed out by its address. Each allocation is mapped into a range of its own.
// A range must not be unmapped during a copy from or to it, so a copy holds it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "core/mutex.h"
#include "core/status.h"
#include "device/cuda/driver.h"
#include "device/cuda/virtual_memory.h"

namespace memspan::cuda {

// All such memory of one process. Thread-safe.
class MappedMemory {
 public:
  // Allocates zeroed memory in steps of kDeviceGranularity. The last owner unmaps and releases it.
  // kOutOfMemory as from Allocation::create().
  Result<std::shared_ptr<std::byte>> allocate(const Device& device, std::size_t bytes)
      MEMSPAN_EXCLUDES(mutex_);
  // An owner of the range that contains the address; null if no range does.
  std::shared_ptr<const void> hold(DevicePtr pointer) MEMSPAN_EXCLUDES(mutex_);

 private:
  struct Known {
    std::size_t bytes = 0;
    std::weak_ptr<const Range> range;
  };
  Mutex mutex_;
  std::map<DevicePtr, Known> ranges_ MEMSPAN_GUARDED_BY(mutex_);  // by base
};

}  // namespace memspan::cuda
