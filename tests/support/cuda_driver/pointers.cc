// SPDX-License-Identifier: Apache-2.0
// What the stand-in says of pointers, and the memory that programs have of their own: allocated,
// shared with other processes, and registered. Pools are in pools.cc.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "memory_state.h"

namespace standin {
namespace {

auto& registered = *new std::map<DevicePtr, std::size_t>;

}  // namespace

// The driver's, in memory.cc.
extern "C" {
ResultCode cuMemCreate(AllocationHandle*, std::size_t, const AllocationProperties*,
                       unsigned long long);
ResultCode cuMemRelease(AllocationHandle);
ResultCode cuMemAddressReserve(DevicePtr*, std::size_t, std::size_t, DevicePtr, unsigned long long);
ResultCode cuMemAddressFree(DevicePtr, std::size_t);
ResultCode cuMemMap(DevicePtr, std::size_t, std::size_t, AllocationHandle, unsigned long long);
ResultCode cuMemUnmap(DevicePtr, std::size_t);
ResultCode cuMemSetAccess(DevicePtr, std::size_t, const Access*, std::size_t);
ResultCode cuMemImportFromShareableHandle(AllocationHandle*, void*, int);
}

namespace {

ResultCode map_anywhere(DevicePtr* at, AllocationHandle handle, std::size_t bytes, Maker maker,
                        PoolHandle pool) {
  ResultCode result = cuMemAddressReserve(at, bytes, 0, 0, 0);
  if (result == kSuccess) result = cuMemMap(*at, bytes, 0, handle, 0);
  const Access access;
  if (result == kSuccess) result = cuMemSetAccess(*at, bytes, &access, 1);
  cuMemRelease(handle);
  const std::lock_guard lock(mutex);
  if (result == kSuccess) {
    mappings[*at]->maker = maker;
    mappings[*at]->pool = pool;
  }
  return result;
}

}  // namespace

ResultCode map_new(DevicePtr* at, std::size_t bytes, Maker maker, PoolHandle pool) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  bytes = (bytes + kPage - 1) / kPage * kPage;
  AllocationHandle handle = 0;
  AllocationProperties properties;
  properties.where.id = std::max(current_device(), 0);
  const ResultCode result = cuMemCreate(&handle, bytes, &properties, 0);
  return result == kSuccess ? map_anywhere(at, handle, bytes, maker, pool) : result;
}

ResultCode map_imported(DevicePtr* at, int descriptor, std::size_t bytes, Maker maker,
                        PoolHandle pool) {
  AllocationHandle handle = 0;
  const auto given = static_cast<std::intptr_t>(descriptor);
  const ResultCode result =
      cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(given), kFileDescriptor);
  return result == kSuccess ? map_anywhere(at, handle, bytes, maker, pool) : result;
}

ResultCode unmap_whole(DevicePtr at) {
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(mutex);
    const auto found = reserved.find(at);
    if (found == reserved.end()) return kInvalidValue;
    bytes = found->second;
  }
  const ResultCode result = cuMemUnmap(at, bytes);
  return result == kSuccess ? cuMemAddressFree(at, bytes) : result;
}

int open_of(pid_t process, int descriptor) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
  return open(path, O_RDWR | O_CLOEXEC);
}

bool is_plain(DevicePtr pointer) {
  const std::lock_guard lock(mutex);
  const auto made = entry_at(reserved, pointer);
  if (made != reserved.end() && pointer - made->first < made->second) return false;
  const auto pinned = entry_at(registered, pointer);
  return pinned == registered.end() || pointer - pinned->first >= pinned->second;
}

}  // namespace standin

using namespace standin;

STANDIN_EXPORT ResultCode cuPointerGetAttribute(void* value, int attribute, DevicePtr pointer) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = mapping_of(pointer);
  if (found == mappings.end()) {
    const auto host = entry_at(registered, pointer);
    const bool is_known = host != registered.end() && pointer - host->first < host->second;
    if (!is_known || attribute != kMemoryType) return kInvalidValue;
    *static_cast<unsigned*>(value) = kHostMemory;
    return kSuccess;
  }
  switch (attribute) {
    case kMemoryType:
      *static_cast<unsigned*>(value) = kDeviceMemory;
      return kSuccess;
    case kIsManaged:
      *static_cast<unsigned*>(value) = 0;
      return kSuccess;
    case kDeviceOrdinal:
      *static_cast<int*>(value) = found->second->memory->device;
      return kSuccess;
    case kIsIpcCapable:
      *static_cast<unsigned*>(value) = found->second->maker == Maker::kAlloc;
      return kSuccess;
    case kShareableAs:
      *static_cast<unsigned*>(value) =
          found->second->maker == Maker::kMap && found->second->memory->is_shareable
              ? kFileDescriptor
              : 0;
      return kSuccess;
    case kPool:
      *static_cast<PoolHandle*>(value) = found->second->pool;
      return kSuccess;
    case kRangeStart:
      *static_cast<DevicePtr*>(value) = found->first;
      return kSuccess;
    case kRangeBytes:
      *static_cast<std::size_t*>(value) = found->second->bytes;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

STANDIN_EXPORT ResultCode cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                                 DevicePtr pointer) {
  for (unsigned i = 0; i < count; ++i)
    static_cast<void>(cuPointerGetAttribute(values[i], attributes[i], pointer));
  return check(Needs::kDriver);
}

STANDIN_EXPORT ResultCode cuMemGetAddressRange_v2(DevicePtr* base, std::size_t* bytes,
                                                  DevicePtr pointer) {
  STANDIN_CHECK(Needs::kContext);
  const std::lock_guard lock(mutex);
  const auto found = mapping_of(pointer);
  if (found == mappings.end()) return kInvalidValue;
  if (base != nullptr) *base = found->first;
  if (bytes != nullptr) *bytes = found->second->bytes;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemHostRegister_v2(void* base, std::size_t bytes, unsigned /*flags*/) {
  STANDIN_CHECK(Needs::kContext);
  const std::lock_guard lock(mutex);
  registered[reinterpret_cast<DevicePtr>(base)] = bytes;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemHostUnregister(void* base) {
  STANDIN_CHECK(Needs::kContext);
  const std::lock_guard lock(mutex);
  return registered.erase(reinterpret_cast<DevicePtr>(base)) == 1 ? kSuccess : kInvalidValue;
}

// What programs have of the runtime: memory of their own.
STANDIN_EXPORT ResultCode cuMemAlloc_v2(DevicePtr* at, std::size_t bytes) {
  STANDIN_CHECK(Needs::kContext);
  return map_new(at, bytes, Maker::kAlloc, nullptr);
}

STANDIN_EXPORT ResultCode cuMemFree_v2(DevicePtr at) {
  STANDIN_CHECK(Needs::kContext);
  {
    const std::lock_guard lock(mutex);
    const auto found = mappings.find(at);
    if (found == mappings.end() ||
        (found->second->maker != Maker::kAlloc && found->second->maker != Maker::kPool))
      return kInvalidValue;
  }
  return unmap_whole(at);
}

// Memory of cuMemAlloc by the process and descriptor that has it.
struct SharedAs {
  pid_t process;
  int descriptor;
  std::size_t bytes;
};

STANDIN_EXPORT ResultCode cuIpcGetMemHandle(IpcHandle* handle, DevicePtr base) {
  STANDIN_CHECK(Needs::kContext);
  const std::lock_guard lock(mutex);
  const auto found = mappings.find(base);
  if (found == mappings.end() || found->second->maker != Maker::kAlloc) return kInvalidValue;
  const SharedAs shared{getpid(), found->second->memory->descriptor, found->second->bytes};
  std::memcpy(handle->bytes, &shared, sizeof shared);
  return kSuccess;
}

// Each time at another address; the process that shared it cannot.
STANDIN_EXPORT ResultCode cuIpcOpenMemHandle_v2(DevicePtr* base, IpcHandle handle, unsigned flags) {
  STANDIN_CHECK(Needs::kContext);
  SharedAs shared;
  std::memcpy(&shared, handle.bytes, sizeof shared);
  if (flags != kLazyPeerAccess) return kInvalidValue;
  if (shared.process == getpid()) return kInvalidContext;
  const int descriptor = open_of(shared.process, shared.descriptor);
  if (descriptor < 0) return kInvalidValue;
  const ResultCode result = map_imported(base, descriptor, shared.bytes, Maker::kIpc, nullptr);
  close(descriptor);
  return result;
}

STANDIN_EXPORT ResultCode cuIpcCloseMemHandle(DevicePtr base) {
  STANDIN_CHECK(Needs::kContext);
  {
    const std::lock_guard lock(mutex);
    const auto found = mappings.find(base);
    if (found == mappings.end() || found->second->maker != Maker::kIpc) return kInvalidValue;
  }
  return unmap_whole(base);
}

// How many handles of allocations there are in this process: for tests of who leaves none behind.
STANDIN_EXPORT std::size_t standin_handles() {
  const std::lock_guard lock(mutex);
  return handles.size();
}
