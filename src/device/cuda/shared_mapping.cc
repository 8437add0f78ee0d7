// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/shared_mapping.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "device/cuda/shared_pointer.h"
#include "device/cuda/virtual_memory.h"

namespace memspan::cuda {
namespace {

// Holds the allocation that is mapped at an address. Not copyable.
class RetainedAllocation {
 public:
  RetainedAllocation(const Device& device, DevicePtr pointer)
      : functions_(*device.functions),
        result_(functions_.retain_handle(&handle_, reinterpret_cast<void*>(pointer))) {
  }  // NOLINT: an address
  ~RetainedAllocation() {
    if (is_there()) functions_.allocation_release(handle_);
  }
  RetainedAllocation(const RetainedAllocation&) = delete;
  RetainedAllocation& operator=(const RetainedAllocation&) = delete;

  bool is_there() const { return result_ == kSuccess; }
  Status status() const { return from_cuda("finding an allocation", result_); }
  AllocationHandle handle() const { return handle_; }

 private:
  const Functions& functions_;
  AllocationHandle handle_ = 0;
  const ResultCode result_;
};

// If the driver does not report the handle types, making the descriptor shows if they suffice.
Status check_shareable(const Device& device, DevicePtr base) {
  std::uint64_t kinds = 0;  // zeroed: the driver may write fewer bytes
  const ResultCode told = device.functions->pointer_attribute(&kinds, kShareableAs, base);
  if (told != kSuccess || (kinds & kFileDescriptor) != 0) return Status::ok();
  return {Code::kNotSupported,
          fmt::format(
              "the memory at {:#x} cannot be shared with other processes: the process that made it "
              "(cuMemCreate) asked for the handle types {:#x}, and "
              "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ({:#x}) is needed. PyTorch's "
              "expandable segments have it with TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=1",
              base, kinds, kFileDescriptor)};
}

Result<Fd> share_one(const Device& device, const Surroundings& mapping) {
  const RetainedAllocation allocation(device, mapping.base);
  if (!allocation.is_there())
    return Status(Code::kNotSupported,
                  fmt::format("the memory at {:#x} was not made by the driver's virtual-memory "
                              "calls, as what is before it was: {}",
                              mapping.base, allocation.status().message()));
  if (mapping.bytes % kDeviceGranularity != 0)
    return Status(Code::kNotSupported,
                  fmt::format("the memory at {:#x} has {} bytes, allowed are multiples of {}",
                              mapping.base, mapping.bytes, kDeviceGranularity));
  MEMSPAN_PASS(check_shareable(device, mapping.base));
  auto descriptor = descriptor_of(device, allocation.handle());
  if (descriptor.is_ok()) return descriptor;
  return Status(Code::kNotSupported,
                fmt::format("the driver does not share the memory at {:#x} with other processes: "
                            "{}",
                            mapping.base, descriptor.status().message()));
}

// kInvalidArgument if the sizes are wrong.
Result<std::vector<std::uint64_t>> read_sizes(ByteReader& reader, std::size_t count) {
  std::vector<std::uint64_t> sizes(count);
  std::uint64_t all = 0;
  for (std::uint64_t& size : sizes) {
    size = reader.u64();
    if (size == 0 || size % kDeviceGranularity != 0 || size > SIZE_MAX / 2 - all)
      return not_shared_memory();
    all += size;
  }
  return sizes;
}

}  // namespace

bool is_mapping(const Device& device, DevicePtr pointer) {
  return RetainedAllocation(device, pointer).is_there();
}

Result<SharedPointer> share_mapping(const Device& device, DevicePtr pointer, std::size_t bytes) {
  SharedPointer shared;
  ByteWriter sizes;
  std::uint64_t offset = 0;
  for (std::size_t done = 0; done < bytes;) {
    auto mapping = surroundings_of(device, pointer + done, 1);
    if (!mapping.is_ok() && done > 0)
      return Status(Code::kInvalidArgument,
                    fmt::format("{} bytes of device memory at {:#x} are more than the {} that are "
                                "mapped",
                                bytes, pointer, done));
    if (!mapping.is_ok()) return mapping.status();
    if (done == 0) offset = pointer - mapping->base;
    auto descriptor = share_one(device, *mapping);
    if (!descriptor.is_ok()) return descriptor.status();
    shared.descriptors.push_back(std::move(descriptor).value());
    sizes.u64(mapping->bytes);
    done = mapping->base + mapping->bytes - pointer;
  }
  ByteWriter writer;
  writer.u64(offset);
  writer.u64(bytes);
  shared.text = writer.take() + sizes.bytes();
  return shared;
}

Result<OpenedPointer> open_mapping(const Device& device, SharedPointer shared) {
  ByteReader reader(shared.text);
  const std::uint64_t offset = reader.u64();
  const std::uint64_t bytes = reader.u64();
  auto sizes = read_sizes(reader, shared.descriptors.size());
  if (!sizes.is_ok()) return sizes.status();
  std::uint64_t all = 0;
  for (const std::uint64_t size : *sizes) all += size;
  if (!reader.is_finished() || offset > all || bytes == 0 || bytes > all - offset)
    return not_shared_memory();
  auto range = Range::make(device, all);
  if (!range.is_ok()) return range.status();
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizes->size(); at += (*sizes)[i++]) {
    auto allocation = Allocation::adopt(device, std::move(shared.descriptors[i]));
    if (!allocation.is_ok()) return allocation.status();
    MEMSPAN_PASS((*range)->map(at, **allocation, (*sizes)[i]));  // the mapping keeps the memory
  }
  // The last owner unmaps it. Owners: copies, and the caller that keeps it open.
  const std::shared_ptr<Range> owner(std::move(range).value());
  return OpenedPointer{std::shared_ptr<std::byte>(owner, owner->base() + offset), bytes};
}

}  // namespace memspan::cuda
