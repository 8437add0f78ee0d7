// SPDX-License-Identifier: Apache-2.0
// Memory of an asynchronous pool (cudaMallocAsync, cuMemAllocFromPoolAsync). The driver shares the
// pool by a descriptor, where it was made for that, and names each allocation of it to who has the
// pool. The pool that a device has by default was not made for it.
#pragma once

#include <cstddef>

#include "core/status.h"
#include "device/cuda/driver.h"
#include "device/memory.h"

namespace memspan::cuda {

// `device` is current in all of them. Null when the memory is of none.
PoolHandle pool_of(const Device& device, DevicePtr pointer);
// kNotSupported when the pool cannot be shared, and what to do.
Result<SharedPointer> share_of_pool(const Device& device, DevicePtr pointer, std::size_t bytes);
Result<OpenedPointer> open_of_pool(const Device& device, const SharedPointer& shared);

}  // namespace memspan::cuda
