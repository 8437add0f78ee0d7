// SPDX-License-Identifier: Apache-2.0
// Memory of an asynchronous pool (cudaMallocAsync, cuMemAllocFromPoolAsync). If a pool was made for
// that, the driver shares it by a descriptor and names its allocations to processes that have
// imported it. A device's default pool was not made for that.
#pragma once

#include <cstddef>

#include "core/status.h"
#include "device/cuda/driver.h"
#include "device/memory.h"

namespace memspan::cuda {

// `device` is current in all functions. Null if the memory is not from a pool.
PoolHandle pool_of(const Device& device, DevicePtr pointer);
// kNotSupported, with a remedy, if the pool cannot be shared.
Result<SharedPointer> share_of_pool(const Device& device, DevicePtr pointer, std::size_t bytes);
Result<OpenedPointer> open_of_pool(const Device& device, const SharedPointer& shared);

}  // namespace memspan::cuda
