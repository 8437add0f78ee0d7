// SPDX-License-Identifier: Apache-2.0
// Shares memory that a program has allocated itself with other processes of this host. The function
// that allocated it decides how the driver shares it:
//
//   cudaMalloc, cuMemAlloc            a handle of the whole allocation (CUDA IPC)
//   cuMemCreate, cuMemMap             shared_mapping.h: descriptors
//   cudaMallocAsync, cuMemAllocAsync  shared_pool.h: the pool's descriptor
#pragma once

#include <cstddef>

#include "core/status.h"
#include "device/cuda/driver.h"
#include "device/memory.h"

namespace memspan::cuda {

// Like those of memspan::Device. A process cannot open cudaMalloc memory that it shared itself.
Result<SharedPointer> share_pointer(const Device& device, DevicePtr pointer, std::size_t bytes);
Result<OpenedPointer> open_pointer(const Device& device, SharedPointer shared);

// The allocation, or the mapping, that a pointer is in. A value.
struct Surroundings {
  DevicePtr base = 0;
  std::size_t bytes = 0;
};
// kInvalidArgument if fewer than `bytes` are allocated there. `device` is current.
Result<Surroundings> surroundings_of(const Device& device, DevicePtr pointer, std::size_t bytes);
// kInvalidArgument: share_pointer() did not make the text.
Status not_shared_memory();

}  // namespace memspan::cuda
