// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU by the driver's virtual-memory calls: physical memory that a file descriptor
// carries to other processes, and addresses into which each of them maps it.
#pragma once

#include "device/cuda/driver.h"
#include "device/memory.h"

namespace memspan::cuda {

// Allocates zeroed memory; `bytes` is rounded up to kDeviceGranularity. kOutOfMemory, with the size
// of the free memory, if the device has less.
Result<std::unique_ptr<DeviceMemory>> allocate(const Device& device, std::size_t bytes);
// The size of memory of another process is SIZE_MAX: the driver does not report it.
Result<std::unique_ptr<DeviceMemory>> adopt(const Device& device, Fd descriptor);

// Holds the memory that is mapped at the address, of unknown size; `device` is current. Fails if it
// was not mapped by these calls.
Result<std::unique_ptr<DeviceMemory>> retain(const Device& device, DevicePtr pointer);

// Addresses for such memory, at any free place or at `wanted`. map() takes the whole memory.
Result<std::unique_ptr<DeviceRange>> reserve(const Device& device, std::size_t bytes);
Result<std::unique_ptr<DeviceRange>> reserve_at(const Device& device, std::size_t bytes,
                                                void* wanted);

// A descriptor as the driver takes it.
inline void* driver_handle(const Fd& descriptor) {
  const auto number = static_cast<std::uintptr_t>(descriptor.get());
  return reinterpret_cast<void*>(number);  // NOLINT: the driver's convention
}

// kNotSupported if the device's pages do not fit windows at multiples of kDeviceGranularity.
Status check_granularity(const Device& device);

// Memory that a program has allocated itself (shared_pointer.cc), like those of memspan::Device. A
// process cannot open cudaMalloc memory that it shared itself.
Result<SharedPointer> share_pointer(const Device& device, DevicePtr pointer, std::size_t bytes);
Result<OpenedPointer> open_pointer(const Device& device, SharedPointer shared);

}  // namespace memspan::cuda
