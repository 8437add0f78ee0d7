// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/shared_pool.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/bytes.h"
#include "device/cuda/shared_pointer.h"

namespace memspan::cuda {
namespace {

// A pool of another process. Destroyed once none of its memory is open.
class ImportedPool {
 public:
  static Result<std::shared_ptr<const ImportedPool>> open(const Device& device,
                                                          const Fd& descriptor) {
    PoolHandle pool = nullptr;
    const auto number = static_cast<std::uintptr_t>(descriptor.get());
    MEMSPAN_PASS(from_cuda("taking over a memory pool",
                           device.functions->pool_import(
                               &pool,
                               reinterpret_cast<void*>(number),  // NOLINT: the driver's convention
                               kFileDescriptor, 0)));
    std::shared_ptr<const ImportedPool> made(new ImportedPool(device, pool));
    // At first only the device of the pool may access it.
    const Access access{{kOnDevice, device.ordinal}, kReadWrite};
    MEMSPAN_PASS(from_cuda(fmt::format("giving CUDA device {} access to a pool", device.ordinal),
                           device.functions->pool_set_access(pool, &access, 1)));
    return made;
  }
  ~ImportedPool() {
    const CurrentContext context(device_);
    if (context.status().is_ok()) device_.functions->pool_destroy(pool_);
  }
  ImportedPool(const ImportedPool&) = delete;
  ImportedPool& operator=(const ImportedPool&) = delete;

  PoolHandle handle() const { return pool_; }

 private:
  ImportedPool(const Device& device, PoolHandle pool) : device_(device), pool_(pool) {}
  const Device device_;
  const PoolHandle pool_;
};

Result<Fd> descriptor_of(const Device& device, PoolHandle pool) {
  int descriptor = -1;
  const Status made = from_cuda(
      "the driver does not share its pool with other processes",
      device.functions->pool_export(static_cast<void*>(&descriptor), pool, kFileDescriptor, 0));
  if (!made.is_ok())
    return Status(Code::kNotSupported,
                  fmt::format("{}. It does so with pools that were made (cudaMemPoolCreate) with "
                              "the handle type cudaMemHandleTypePosixFileDescriptor; a device's "
                              "default pool is none of them",
                              made.message()));
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return Fd(descriptor);
}

}  // namespace

PoolHandle pool_of(const Device& device, DevicePtr pointer) {
  PoolHandle pool = nullptr;
  const ResultCode told =
      device.functions->pointer_attribute(static_cast<void*>(&pool), kPool, pointer);
  return told == kSuccess ? pool : nullptr;
}

Result<SharedPointer> share_of_pool(const Device& device, DevicePtr pointer, std::size_t bytes) {
  MEMSPAN_TRY_ASSIGN(const Surroundings whole, surroundings_of(device, pointer, bytes),
                     "sharing memory of a pool");
  SharedPointer shared;
  MEMSPAN_TRY_ASSIGN(shared.descriptors.emplace_back(),
                     descriptor_of(device, pool_of(device, pointer)), "sharing memory of a pool");
  PoolPointer named;
  MEMSPAN_PASS(from_cuda("naming memory of a pool to other processes",
                         device.functions->pool_export_pointer(&named, whole.base)));
  ByteWriter writer;
  writer.u64(pointer - whole.base);
  writer.text({reinterpret_cast<const char*>(named.bytes), sizeof named.bytes});
  shared.text = writer.take();
  return shared;
}

Result<OpenedPointer> open_of_pool(const Device& device, const SharedPointer& shared) {
  ByteReader reader(shared.text);
  const std::uint64_t offset = reader.u64();
  const std::string_view text = reader.text();
  PoolPointer named;
  if (!reader.is_finished() || text.size() != sizeof named.bytes || shared.descriptors.size() != 1)
    return not_shared_memory();
  std::memcpy(named.bytes, text.data(), text.size());
  auto pool = ImportedPool::open(device, shared.descriptors.front());
  if (!pool.is_ok()) return pool.status();
  DevicePtr base = 0;
  MEMSPAN_PASS(from_cuda("opening memory of another process",
                         device.functions->pool_import_pointer(&base, (*pool)->handle(), &named)));
  const auto close = [device, base, held = std::move(pool).value()](std::byte*) {
    const CurrentContext closing(device);
    if (closing.status().is_ok()) device.functions->memory_free(base);
  };
  return OpenedPointer{
      std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(base + offset), close), SIZE_MAX};
}

}  // namespace memspan::cuda
