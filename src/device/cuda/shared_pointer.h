// SPDX-License-Identifier: Apache-2.0
// Shares memory that a program has allocated itself with other processes of this host. The function
// that allocated it decides how the driver shares it:
//
//   cudaMalloc, cuMemAlloc            a handle of the whole allocation (CUDA IPC)
//   cuMemCreate, cuMemMap             descriptors of the allocations
//   cudaMallocAsync, cuMemAllocAsync  the pool's descriptor, and a name in the pool
#pragma once

#include "device/cuda/driver.h"
#include "device/memory.h"

namespace memspan::cuda {

// Like those of memspan::Device. A process cannot open cudaMalloc memory that it shared itself.
Result<SharedPointer> share_pointer(const Device& device, DevicePtr pointer, std::size_t bytes);
Result<OpenedPointer> open_pointer(const Device& device, SharedPointer shared);

}  // namespace memspan::cuda
