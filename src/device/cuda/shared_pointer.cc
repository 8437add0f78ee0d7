// SPDX-License-Identifier: Apache-2.0
// Shares memory that a program has allocated itself with other processes of this host. The function
// that allocated it decides how the driver shares it:
//
//   cudaMalloc, cuMemAlloc            a handle of the whole allocation (CUDA IPC)
//   cuMemCreate, cuMemMap             descriptors of the allocations
//   cudaMallocAsync, cuMemAllocAsync  the pool's descriptor, and a name in the pool
#include <fcntl.h>
#include <fmt/format.h>

#include "core/bytes.h"
#include "device/cuda/virtual_memory.h"

namespace memspan::cuda {
namespace {

// The device is current in all of these functions.

Status not_shared_memory() {
  return {Code::kInvalidArgument, "something else came than shared memory of a device"};
}

// The allocation, or the mapping, that a pointer is in. A value.
struct Surroundings {
  DevicePtr base = 0;
  std::size_t bytes = 0;
};
// kInvalidArgument if fewer than `bytes` are allocated there.
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

// The text of memory that the driver names by 64 bytes: a whole allocation, of which the program's
// memory may be a part.
std::string text_of(std::uint64_t offset, const SharedName& name) {
  ByteWriter writer;
  writer.u64(offset);
  writer.text({name.bytes, sizeof name.bytes});
  return writer.take();
}
// False: it is something else.
bool read_text(std::string_view text, std::uint64_t& offset, SharedName& name) {
  ByteReader reader(text);
  offset = reader.u64();
  const std::string_view bytes = reader.text();
  if (!reader.is_finished() || bytes.size() != sizeof name.bytes) return false;
  std::memcpy(name.bytes, bytes.data(), bytes.size());
  return true;
}

// `close` gives the memory up. The driver does not report how many bytes it has.
template <typename Close>
OpenedPointer opened_at(const Device& device, DevicePtr base, std::uint64_t offset, Close close) {
  const auto close_on_device = [device, close = std::move(close)](std::byte*) {
    const auto closing = CurrentContext::of(device);
    if (closing.is_ok()) close(*device.functions);
  };
  return {std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(base + offset), close_on_device),
          SIZE_MAX};
}

// ---- cudaMalloc

Result<SharedPointer> share_allocation(const Device& device, DevicePtr pointer, std::size_t bytes) {
  MEMSPAN_TRY_ASSIGN(const Surroundings whole, surroundings_of(device, pointer, bytes),
                     "sharing memory of cudaMalloc");
  IpcHandle handle;
  const Status shared = from_cuda("the driver does not share it with other processes",
                                  device.functions->ipc_share(&handle, whole.base));
  if (!shared.is_ok()) return Status(Code::kNotSupported, shared.message());
  return SharedPointer{text_of(pointer - whole.base, handle), {}};
}

Result<OpenedPointer> open_allocation(const Device& device, const SharedPointer& shared) {
  std::uint64_t offset = 0;
  IpcHandle handle;
  if (!read_text(shared.text, offset, handle)) return not_shared_memory();
  DevicePtr base = 0;
  MEMSPAN_PASS(from_cuda("opening memory of another process",
                         device.functions->ipc_open(&base, handle, kLazyPeerAccess)));
  return opened_at(device, base, offset, [base](const Functions& cuda) { cuda.ipc_close(base); });
}

// ---- the driver's virtual-memory calls: PyTorch's expandable segments, windows of our own pools,
// allocate_mapped(). A range of it may span several adjacent allocations; each has a descriptor:
//
//   owner   |  allocation 0  |  allocation 1  |  allocation 2  |
//                  [------- shared range ---------)
//   peer    the same allocations, mapped side by side into a range of its own

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

// kNotSupported, with a remedy, if a descriptor cannot share the allocation.
Result<Fd> share_one(const Device& device, const Surroundings& mapping) {
  const auto allocation = retain(device, mapping.base);
  if (!allocation.is_ok())
    return Status(Code::kNotSupported,
                  fmt::format("the memory at {:#x} was not made by the driver's virtual-memory "
                              "calls, as what is before it was: {}",
                              mapping.base, allocation.status().message()));
  if (mapping.bytes % kDeviceGranularity != 0)
    return Status(Code::kNotSupported,
                  fmt::format("the memory at {:#x} has {} bytes, allowed are multiples of {}",
                              mapping.base, mapping.bytes, kDeviceGranularity));
  MEMSPAN_PASS(check_shareable(device, mapping.base));
  auto descriptor = (*allocation)->duplicate();
  if (descriptor.is_ok()) return descriptor;
  return Status(Code::kNotSupported,
                fmt::format("the driver does not share the memory at {:#x} with other processes: "
                            "{}",
                            mapping.base, descriptor.status().message()));
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
    MEMSPAN_PASS_ASSIGN(auto descriptor, share_one(device, *mapping));
    shared.descriptors.push_back(std::move(descriptor));
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
  std::vector<std::uint64_t> sizes(shared.descriptors.size());
  std::uint64_t all = 0;
  for (std::uint64_t& size : sizes) {
    size = reader.u64();
    if (size == 0 || size % kDeviceGranularity != 0 || size > SIZE_MAX / 2 - all)
      return not_shared_memory();
    all += size;
  }
  if (!reader.is_finished() || offset > all || bytes == 0 || bytes > all - offset)
    return not_shared_memory();
  MEMSPAN_PASS_ASSIGN(auto range, reserve(device, all));
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); at += sizes[i++]) {
    MEMSPAN_PASS_ASSIGN(auto allocation, adopt(device, std::move(shared.descriptors[i])));
    MEMSPAN_PASS(range->map(at, *allocation, sizes[i]));  // the mapping keeps the memory
  }
  // The last owner unmaps it. Owners: copies, and the caller that keeps it open.
  const std::shared_ptr<DeviceRange> owner(std::move(range));
  return OpenedPointer{std::shared_ptr<std::byte>(owner, owner->base() + offset), bytes};
}

// ---- asynchronous pools (cudaMallocAsync, cuMemAllocFromPoolAsync). If a pool was made for that,
// the driver shares it by a descriptor and names its allocations to processes that have imported
// it. A device's default pool was not made for that.

// Null if the memory is not from a pool.
PoolHandle pool_of(const Device& device, DevicePtr pointer) {
  PoolHandle pool = nullptr;
  const ResultCode told =
      device.functions->pointer_attribute(static_cast<void*>(&pool), kPool, pointer);
  return told == kSuccess ? pool : nullptr;
}

// kNotSupported, with a remedy, if the pool cannot be shared.
Result<Fd> descriptor_of_pool(const Device& device, PoolHandle pool) {
  int descriptor = -1;
  const Status made = from_cuda(
      "the driver does not share its pool with other processes",
      device.functions->pool_export(static_cast<void*>(&descriptor), pool, kFileDescriptor, 0));
  if (!made.is_ok())
    return Status(Code::kNotSupported,
                  fmt::format("{}. It does so with pools that were made (cudaMemPoolCreate) with "
                              "the handle type cudaMemHandleTypePosixFileDescriptor; a device's "
                              "default pool is not one of them",
                              made.message()));
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return Fd(descriptor);
}

Result<SharedPointer> share_of_pool(const Device& device, DevicePtr pointer, std::size_t bytes) {
  MEMSPAN_TRY_ASSIGN(const Surroundings whole, surroundings_of(device, pointer, bytes),
                     "sharing memory of a pool");
  SharedPointer shared;
  MEMSPAN_TRY_ASSIGN(shared.descriptors.emplace_back(),
                     descriptor_of_pool(device, pool_of(device, pointer)),
                     "sharing memory of a pool");
  PoolPointer named;
  MEMSPAN_PASS(from_cuda("naming memory of a pool to other processes",
                         device.functions->pool_export_pointer(&named, whole.base)));
  shared.text = text_of(pointer - whole.base, named);
  return shared;
}

// A pool of another process. Destroyed once none of its memory is open.
Result<std::shared_ptr<PoolObject>> import_pool(const Device& device, const Fd& descriptor) {
  PoolHandle pool = nullptr;
  MEMSPAN_PASS(from_cuda(
      "taking over a memory pool",
      device.functions->pool_import(&pool, driver_handle(descriptor), kFileDescriptor, 0)));
  std::shared_ptr<PoolObject> made(pool, [device](PoolHandle handle) {
    const auto context = CurrentContext::of(device);
    if (context.is_ok()) device.functions->pool_destroy(handle);
  });
  // At first only the device of the pool may access it.
  const Access access{{kOnDevice, device.ordinal}, kReadWrite};
  MEMSPAN_PASS(from_cuda(fmt::format("giving CUDA device {} access to a pool", device.ordinal),
                         device.functions->pool_set_access(pool, &access, 1)));
  return made;
}

Result<OpenedPointer> open_of_pool(const Device& device, const SharedPointer& shared) {
  std::uint64_t offset = 0;
  PoolPointer named;
  if (!read_text(shared.text, offset, named) || shared.descriptors.size() != 1)
    return not_shared_memory();
  MEMSPAN_PASS_ASSIGN(auto pool, import_pool(device, shared.descriptors.front()));
  DevicePtr base = 0;
  MEMSPAN_PASS(from_cuda("opening memory of another process",
                         device.functions->pool_import_pointer(&base, pool.get(), &named)));
  return opened_at(device, base, offset,
                   [base, held = pool](const Functions& cuda) { cuda.memory_free(base); });
}

// ----

// The first byte of the text.
enum class Maker : std::uint8_t { kAllocator = 1, kMapping = 2, kPool = 3 };

Maker maker_of(const Device& device, DevicePtr pointer) {
  std::uint64_t is_ipc_capable = 0;  // zeroed: the driver may write fewer bytes
  if (device.functions->pointer_attribute(&is_ipc_capable, kIsIpcCapable, pointer) == kSuccess &&
      is_ipc_capable != 0)
    return Maker::kAllocator;
  if (retain(device, pointer).is_ok()) return Maker::kMapping;
  if (pool_of(device, pointer) != nullptr) return Maker::kPool;
  return Maker::kAllocator;  // the driver reports the reason
}

}  // namespace

Result<SharedPointer> share_pointer(const Device& device, DevicePtr pointer, std::size_t bytes) {
  MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device));
  const Maker maker = maker_of(device, pointer);
  const auto share = maker == Maker::kMapping ? share_mapping
                     : maker == Maker::kPool  ? share_of_pool
                                              : share_allocation;
  Result<SharedPointer> shared = share(device, pointer, bytes);
  if (shared.is_ok()) shared->text.insert(shared->text.begin(), static_cast<char>(maker));
  return shared;
}

Result<OpenedPointer> open_pointer(const Device& device, SharedPointer shared) {
  if (shared.text.empty()) return not_shared_memory();
  MEMSPAN_PASS_ASSIGN(const CurrentContext context, CurrentContext::of(device));
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
