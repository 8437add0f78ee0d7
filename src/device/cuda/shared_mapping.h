// SPDX-License-Identifier: Apache-2.0
// Memory that a program has made by the driver's virtual-memory calls: PyTorch's expandable
// segments, windows of our own pools, allocate_mapped(). A range of it may span several adjacent
// allocations; each has a descriptor:
//
//   owner   |  allocation 0  |  allocation 1  |  allocation 2  |
//                  [------- shared range ---------)
//   peer    the same allocations, mapped side by side into a range of its own
#pragma once

#include <cstddef>

#include "core/status.h"
#include "device/cuda/driver.h"
#include "device/memory.h"

namespace memspan::cuda {

// `device` is current in all functions. Whether such a call mapped the address.
bool is_mapping(const Device& device, DevicePtr pointer);
// kNotSupported, with a remedy, if a descriptor cannot share one of the allocations.
Result<SharedPointer> share_mapping(const Device& device, DevicePtr pointer, std::size_t bytes);
Result<OpenedPointer> open_mapping(const Device& device, SharedPointer shared);

}  // namespace memspan::cuda
