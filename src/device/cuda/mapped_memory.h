// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU that is handed out by its address: a range of its own, into which an allocation
// is mapped. A range that something is copied from or to must not be unmapped, so a copy holds it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "core/mutex.h"
#include "core/status.h"
#include "device/cuda/driver.h"
#include "device/cuda/virtual_memory.h"

namespace memspan::cuda {

// What one process has of it. Thread-safe.
class MappedMemory {
 public:
  // Of zeros, in steps of kDeviceGranularity. Unmapped and given back with the last owner.
  // kOutOfMemory as Allocation::create().
  Result<std::shared_ptr<std::byte>> allocate(const Device& device, std::size_t bytes)
      MEMSPAN_EXCLUDES(mutex_);
  // An owner of the range that the address is in; null when it is in none.
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
