// SPDX-License-Identifier: Apache-2.0
// Memory that a program has made by the driver's virtual-memory calls: PyTorch's expandable
// segments, windows of our own pools, allocate_mapped(). A range of it may lie in several
// allocations, one behind the other; each has a descriptor:
//
//   owner   |  allocation 0  |  allocation 1  |  allocation 2  |
//                  [------- what is shared -------)
//   peer    the same allocations, mapped side by side into a range of its own
#pragma once

#include <cstddef>

#include "core/status.h"
#include "device/cuda/driver.h"
#include "device/memory.h"

namespace memspan::cuda {

// `device` is current in all of them. Whether the address was mapped by such a call.
bool is_mapping(const Device& device, DevicePtr pointer);
// kNotSupported when an allocation cannot be shared by a descriptor, and what to do.
Result<SharedPointer> share_mapping(const Device& device, DevicePtr pointer, std::size_t bytes);
Result<OpenedPointer> open_mapping(const Device& device, SharedPointer shared);

}  // namespace memspan::cuda
