// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/virtual_memory.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <map>

#include "core/environment.h"
#include "core/pages.h"

namespace memspan::cuda {
namespace {

AllocationProperties properties_of(const Device& device) {
  return {.where = {kOnDevice, device.ordinal}};
}

Status allow_access(const Device& device, DevicePtr at, std::size_t bytes) {
  const Access access{{kOnDevice, device.ordinal}, kReadWrite};
  return from_cuda(fmt::format("giving CUDA device {} access to memory", device.ordinal),
                   device.functions->set_access(at, bytes, &access, 1));
}

// Uses a stream of its own: the default one would wait for the program's kernels.
Status fill_with_zeros(const Functions& cuda, DevicePtr at, std::size_t bytes) {
  StreamHandle stream = nullptr;
  MEMSPAN_PASS(from_cuda("making a CUDA stream", cuda.stream_create(&stream, kNonBlockingStream)));
  ResultCode result = cuda.fill_async(at, 0, bytes, stream);
  if (result == kSuccess) result = cuda.stream_synchronize(stream);
  cuda.stream_destroy(stream);
  return from_cuda("clearing memory of a CUDA device", result);
}

// New memory may hold the data of another process, which must not leak.
Status clear(const Device& device, AllocationHandle handle, std::size_t bytes) {
  const Functions& cuda = *device.functions;
  DevicePtr at = 0;
  MEMSPAN_PASS(
      from_cuda("finding addresses to clear memory at", cuda.address_reserve(&at, bytes, 0, 0, 0)));
  Status status = from_cuda("mapping memory to clear it", cuda.map(at, bytes, 0, handle, 0));
  if (status.is_ok()) {
    status = allow_access(device, at, bytes);
    if (status.is_ok()) status = fill_with_zeros(cuda, at, bytes);
    cuda.unmap(at, bytes);
  }
  cuda.address_free(at, bytes);
  return status;
}

class Allocation final : public DeviceMemory, NotCopyable {
 public:
  Allocation(const Device& device, AllocationHandle handle, std::size_t bytes)
      : device_(device), handle_(handle), bytes_(bytes) {}
  ~Allocation() override {
    const auto context = CurrentContext::of(device_);
    if (context.is_ok()) device_.functions->allocation_release(handle_);
  }

  std::size_t bytes() const override { return bytes_; }
  Result<Fd> duplicate() const override {
    MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device_));
    int descriptor = -1;
    MEMSPAN_PASS(
        from_cuda("making a descriptor of a CUDA device's memory",
                  device_.functions->export_handle(&descriptor, handle_, kFileDescriptor, 0)));
    // Otherwise a program that this process starts would hold the memory.
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    return Fd(descriptor);
  }
  AllocationHandle handle() const { return handle_; }

 private:
  const Device device_;
  const AllocationHandle handle_;
  const std::size_t bytes_;
};

class Range final : public DeviceRange, NotCopyable {
 public:
  Range(const Device& device, DevicePtr base, std::size_t bytes, std::size_t taken)
      : device_(device), base_(base), bytes_(bytes), taken_(taken) {}
  ~Range() override {
    const auto context = CurrentContext::of(device_);
    if (!context.is_ok()) return;
    for (const auto& [at, bytes] : mapped_) device_.functions->unmap(base_ + at, bytes);
    device_.functions->address_free(base_, taken_);
  }

  std::byte* base() const override { return reinterpret_cast<std::byte*>(base_); }
  std::size_t bytes() const override { return bytes_; }

  Status map(std::size_t at, const DeviceMemory& memory, std::size_t bytes) override {
    bytes = align_up(bytes, kDeviceGranularity);
    if (at > bytes_ || bytes > bytes_ - at)
      return {Code::kInvalidArgument,
              fmt::format("mapping [{}, {}) into {} reserved bytes", at, at + bytes, bytes_)};
    MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device_));
    MEMSPAN_PASS(
        from_cuda(fmt::format("mapping {} of memory of a CUDA device", format_size(bytes)),
                  device_.functions->map(base_ + at, bytes, 0,
                                         static_cast<const Allocation&>(memory).handle(), 0)));
    Status allowed = allow_access(device_, base_ + at, bytes);
    if (!allowed.is_ok()) {
      device_.functions->unmap(base_ + at, bytes);
      return allowed;
    }
    mapped_[at] = bytes;
    return Status::ok();
  }
  Status unmap(std::size_t at, std::size_t bytes) override {
    MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device_));
    Status first;
    for (auto one = mapped_.lower_bound(at); one != mapped_.end() && one->first < at + bytes;) {
      Status status = from_cuda("unmapping memory of a CUDA device",
                                device_.functions->unmap(base_ + one->first, one->second));
      if (first.is_ok()) first = std::move(status);
      one = mapped_.erase(one);
    }
    return first;
  }

 private:
  const Device device_;
  const DevicePtr base_;
  const std::size_t bytes_;
  const std::size_t taken_;                    // addresses, in whole steps of the driver
  std::map<std::size_t, std::size_t> mapped_;  // offset, bytes: the driver unmaps whole mappings
};
Status too_little(const Device& device, std::size_t bytes, const Status& why) {
  std::size_t free = 0, total = 0;
  device.functions->memory_info(&free, &total);
  return {Code::kOutOfMemory,
          fmt::format("{} ({} bytes) of memory of CUDA device {} are wanted, {} of {} are free: {}",
                      format_size(bytes), bytes, device.ordinal, format_size(free),
                      format_size(total), why.message())};
}

}  // namespace

Status check_granularity(const Device& device) {
  const AllocationProperties properties = properties_of(device);
  std::size_t bytes = 0;
  MEMSPAN_PASS(
      from_cuda(fmt::format("asking CUDA device {} for the size of its pages", device.ordinal),
                device.functions->allocation_granularity(&bytes, &properties, kLeastGranularity)));
  if (bytes != 0 && kDeviceGranularity % bytes == 0) return Status::ok();
  return {Code::kNotSupported, fmt::format("CUDA device {} allocates in steps of {} bytes, allowed "
                                           "are divisors of {}",
                                           device.ordinal, bytes, kDeviceGranularity)};
}

Result<std::unique_ptr<DeviceMemory>> allocate(const Device& device, std::size_t bytes) {
  MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device));
  if (bytes > SIZE_MAX - kDeviceGranularity)
    return Status(Code::kOutOfMemory, fmt::format("{} bytes are more than any device has", bytes));
  bytes = align_up(bytes, kDeviceGranularity);
  const AllocationProperties properties = properties_of(device);
  AllocationHandle handle = 0;
  const Status made =
      from_cuda("making memory of a CUDA device",
                device.functions->allocation_create(&handle, bytes, &properties, 0));
  if (made.code() == Code::kOutOfMemory) return too_little(device, bytes, made);
  MEMSPAN_PASS(made);
  std::unique_ptr<DeviceMemory> allocation(new Allocation(device, handle, bytes));
  MEMSPAN_PASS(clear(device, handle, bytes));
  return allocation;
}

// The driver keeps what it needs of the descriptor.
Result<std::unique_ptr<DeviceMemory>> adopt(const Device& device, Fd descriptor) {
  MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device));
  AllocationHandle handle = 0;
  MEMSPAN_PASS(from_cuda(
      "taking over memory of a CUDA device",
      device.functions->import_handle(&handle, driver_handle(descriptor), kFileDescriptor)));
  return std::unique_ptr<DeviceMemory>(new Allocation(device, handle, SIZE_MAX));
}

Result<std::unique_ptr<DeviceMemory>> retain(const Device& device, DevicePtr pointer) {
  AllocationHandle handle = 0;
  void* const address = reinterpret_cast<void*>(pointer);  // NOLINT: an address
  MEMSPAN_PASS(
      from_cuda("finding an allocation", device.functions->retain_handle(&handle, address)));
  return std::unique_ptr<DeviceMemory>(new Allocation(device, handle, SIZE_MAX));
}

Result<std::unique_ptr<DeviceRange>> reserve(const Device& device, std::size_t bytes) {
  MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device));
  bytes = align_up(bytes, kDeviceGranularity);
  DevicePtr base = 0;
  MEMSPAN_PASS(
      from_cuda(fmt::format("reserving {} of addresses", format_size(bytes)),
                device.functions->address_reserve(&base, bytes, kDeviceGranularity, 0, 0)));
  return std::unique_ptr<DeviceRange>(new Range(device, base, bytes, bytes));
}

Result<std::unique_ptr<DeviceRange>> reserve_at(const Device& device, std::size_t bytes,
                                                void* wanted) {
  MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device));
  const Functions& cuda = *device.functions;
  const std::size_t taken = align_up(bytes, kDeviceAddressStep);
  const auto place = reinterpret_cast<DevicePtr>(wanted);
  DevicePtr base = 0;
  const Status made =
      from_cuda(fmt::format("reserving {} of addresses at {:#x}", format_size(taken), place),
                cuda.address_reserve(&base, taken, kDeviceGranularity, place, 0));
  // If the addresses are in use, the driver may refuse or reserve another place.
  if (!made.is_ok()) return Status(Code::kUnavailable, made.message());
  if (base != place) {
    cuda.address_free(base, taken);
    return Status(Code::kUnavailable,
                  fmt::format("the CUDA driver cannot reserve the addresses {:#x} to {:#x} here",
                              place, place + taken));
  }
  return std::unique_ptr<DeviceRange>(
      new Range(device, base, align_up(bytes, kDeviceGranularity), taken));
}

}  // namespace memspan::cuda
