// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/shared_pointer.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/bytes.h"
#include "device/cuda/shared_mapping.h"
#include "device/cuda/shared_pool.h"

namespace memspan::cuda {
namespace {

// The first byte of the text.
enum class Maker : std::uint8_t { kAllocator = 1, kMapping = 2, kPool = 3 };

Maker maker_of(const Device& device, DevicePtr pointer) {
  std::uint64_t is_ipc_capable = 0;  // zeroed: the driver may write fewer bytes
  if (device.functions->pointer_attribute(&is_ipc_capable, kIsIpcCapable, pointer) == kSuccess &&
      is_ipc_capable != 0)
    return Maker::kAllocator;
  if (is_mapping(device, pointer)) return Maker::kMapping;
  if (pool_of(device, pointer) != nullptr) return Maker::kPool;
  return Maker::kAllocator;  // the driver reports the reason
}

// The driver shares only whole allocations; the program's memory may be a part of one.
Result<SharedPointer> share_allocation(const Device& device, DevicePtr pointer, std::size_t bytes) {
  MEMSPAN_TRY_ASSIGN(const Surroundings whole, surroundings_of(device, pointer, bytes),
                     "sharing memory of cudaMalloc");
  IpcHandle handle;
  const Status shared = from_cuda("the driver does not share it with other processes",
                                  device.functions->ipc_share(&handle, whole.base));
  if (!shared.is_ok()) return Status(Code::kNotSupported, shared.message());
  ByteWriter writer;
  writer.u64(pointer - whole.base);
  writer.text({handle.bytes, sizeof handle.bytes});
  return SharedPointer{writer.take(), {}};
}

Result<OpenedPointer> open_allocation(const Device& device, const SharedPointer& shared) {
  ByteReader reader(shared.text);
  const std::uint64_t offset = reader.u64();
  const std::string_view text = reader.text();
  IpcHandle handle;
  if (!reader.is_finished() || text.size() != sizeof handle.bytes) return not_shared_memory();
  std::memcpy(handle.bytes, text.data(), text.size());
  DevicePtr base = 0;
  MEMSPAN_PASS(from_cuda("opening memory of another process",
                         device.functions->ipc_open(&base, handle, kLazyPeerAccess)));
  const auto close = [device, base](std::byte*) {
    const CurrentContext closing(device);
    if (closing.status().is_ok()) device.functions->ipc_close(base);
  };
  return OpenedPointer{
      std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(base + offset), close), SIZE_MAX};
}

Result<SharedPointer> share_as(Maker maker, const Device& device, DevicePtr pointer,
                               std::size_t bytes) {
  switch (maker) {
    case Maker::kMapping:
      return share_mapping(device, pointer, bytes);
    case Maker::kPool:
      return share_of_pool(device, pointer, bytes);
    case Maker::kAllocator:
      break;
  }
  return share_allocation(device, pointer, bytes);
}

}  // namespace

Status not_shared_memory() {
  return {Code::kInvalidArgument, "something else came than shared memory of a device"};
}

Result<Surroundings> surroundings_of(const Device& device, DevicePtr pointer, std::size_t bytes) {
  Surroundings found;
  MEMSPAN_PASS(from_cuda(fmt::format("finding the allocation of {:#x}", pointer),
                         device.functions->address_range(&found.base, &found.bytes, pointer)));
  const std::size_t there = found.bytes - (pointer - found.base);
  if (bytes <= there) return found;
  return Status(Code::kInvalidArgument,
                fmt::format("{} bytes of device memory at {:#x} are more than the {} that are "
                            "allocated",
                            bytes, pointer, there));
}

Result<SharedPointer> share_pointer(const Device& device, DevicePtr pointer, std::size_t bytes) {
  const CurrentContext context(device);
  MEMSPAN_PASS(context.status());
  const Maker maker = maker_of(device, pointer);
  Result<SharedPointer> shared = share_as(maker, device, pointer, bytes);
  if (shared.is_ok()) shared->text.insert(shared->text.begin(), static_cast<char>(maker));
  return shared;
}

Result<OpenedPointer> open_pointer(const Device& device, SharedPointer shared) {
  if (shared.text.empty()) return not_shared_memory();
  const CurrentContext context(device);
  MEMSPAN_PASS(context.status());
  const auto maker = static_cast<Maker>(shared.text.front());
  shared.text.erase(shared.text.begin());
  switch (maker) {
    case Maker::kAllocator:
      return open_allocation(device, shared);
    case Maker::kMapping:
      return open_mapping(device, std::move(shared));
    case Maker::kPool:
      return open_of_pool(device, shared);
  }
  return not_shared_memory();
}

}  // namespace memspan::cuda
