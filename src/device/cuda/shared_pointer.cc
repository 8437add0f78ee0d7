// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/shared_pointer.h"

#include <fmt/format.h>

#include <cstring>

#include "core/bytes.h"

namespace memspan::cuda {

// The driver shares whole allocations, of which a program may have parts.
Result<std::string> share_pointer(const Device& device, DevicePtr pointer, std::size_t bytes) {
  const CurrentContext context(device);
  MEMSPAN_PASS(context.status());
  DevicePtr base = 0;
  std::size_t all = 0;
  MEMSPAN_PASS(from_cuda(fmt::format("finding the allocation of {:#x}", pointer),
                         device.functions->address_range(&base, &all, pointer)));
  const std::size_t offset = pointer - base;
  if (bytes > all - offset)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} bytes of device memory at {:#x} are more than the {} that are "
                              "there",
                              bytes, pointer, all - offset));
  IpcHandle handle;
  const Status shared = from_cuda("the driver does not share it with other processes",
                                  device.functions->ipc_share(&handle, base));
  if (!shared.is_ok()) return Status(Code::kNotSupported, shared.message());
  ByteWriter writer;
  writer.u64(offset);
  writer.text({handle.bytes, sizeof handle.bytes});
  return writer.take();
}

Result<std::shared_ptr<std::byte>> open_pointer(const Device& device, std::string_view shared) {
  ByteReader reader(shared);
  const std::uint64_t offset = reader.u64();
  const std::string_view text = reader.text();
  IpcHandle handle;
  if (!reader.is_finished() || text.size() != sizeof handle.bytes)
    return Status(Code::kInvalidArgument, "something else came than shared memory of a device");
  std::memcpy(handle.bytes, text.data(), text.size());
  const CurrentContext context(device);
  MEMSPAN_PASS(context.status());
  DevicePtr base = 0;
  MEMSPAN_PASS(from_cuda("opening memory of another process",
                         device.functions->ipc_open(&base, handle, kLazyPeerAccess)));
  // Owned by who copies from and to it, and by what remembers that it is open.
  return std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(base + offset),
                                    [device, base](std::byte*) {
                                      const CurrentContext closing(device);
                                      if (closing.status().is_ok())
                                        device.functions->ipc_close(base);
                                    });
}

}  // namespace memspan::cuda
