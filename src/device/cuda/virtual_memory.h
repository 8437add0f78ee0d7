// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU by the driver's virtual-memory calls: physical memory that a file descriptor
// carries to other processes, and addresses into which each of them maps it.
#pragma once

#include <map>
#include <memory>

#include "device/cuda/driver.h"
#include "device/memory.h"

namespace memspan::cuda {

class Allocation final : public DeviceMemory {
 public:
  // Allocates zeroed memory; `bytes` is rounded up to kDeviceGranularity. kOutOfMemory, with the
  // size of the free memory, if the device has less.
  static Result<std::unique_ptr<Allocation>> create(const Device& device, std::size_t bytes);
  static Result<std::unique_ptr<Allocation>> adopt(const Device& device, Fd descriptor);
  ~Allocation() override;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  // SIZE_MAX for memory of another process: the driver does not report its size.
  std::size_t bytes() const override { return bytes_; }
  Result<Fd> duplicate() const override;
  AllocationHandle handle() const { return handle_; }

 private:
  Allocation(const Device& device, AllocationHandle handle, std::size_t bytes)
      : device_(device), handle_(handle), bytes_(bytes) {}
  const Device device_;
  const AllocationHandle handle_;
  const std::size_t bytes_;
};

class Range final : public DeviceRange {
 public:
  static Result<std::unique_ptr<Range>> make_at(const Device& device, std::size_t bytes,
                                                void* wanted);
  // At any free addresses.
  static Result<std::unique_ptr<Range>> make(const Device& device, std::size_t bytes);
  ~Range() override;
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  std::byte* base() const override { return reinterpret_cast<std::byte*>(base_); }
  std::size_t bytes() const override { return bytes_; }
  // `bytes` must be the size of the whole memory.
  Status map(std::size_t at, const DeviceMemory& memory, std::size_t bytes) override;
  Status unmap(std::size_t at, std::size_t bytes) override;

 private:
  Range(const Device& device, DevicePtr base, std::size_t bytes, std::size_t taken)
      : device_(device), base_(base), bytes_(bytes), taken_(taken) {}
  const Device device_;
  const DevicePtr base_;
  const std::size_t bytes_;
  const std::size_t taken_;                    // addresses, in whole steps of the driver
  std::map<std::size_t, std::size_t> mapped_;  // offset, bytes: the driver unmaps whole mappings
};

// A descriptor of memory for another process; `device` is current. Fails with the driver's error if
// the memory was not made for that.
Result<Fd> descriptor_of(const Device& device, AllocationHandle handle);

// kNotSupported if the device's pages do not fit windows at multiples of kDeviceGranularity.
Status check_granularity(const Device& device);

}  // namespace memspan::cuda
