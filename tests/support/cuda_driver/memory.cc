// SPDX-License-Identifier: Apache-2.0
// The stand-in's memory: allocations are memfds, handles of them shared with other processes are
// descriptors, and addresses are ranges without access.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include "standin.h"

namespace standin {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

// Physical memory; lives as long as a handle or a mapping of it.
struct Memory {
  int descriptor;
  std::size_t bytes;
  ~Memory() { close(descriptor); }
};

// Memory at a device address, and where the stand-in itself sees it.
struct Mapping {
  std::shared_ptr<Memory> memory;
  std::size_t bytes;
  std::byte* own;
  bool is_accessible = false;
  bool is_allocated = false;  // by cuMemAlloc
  ~Mapping() { munmap(own, bytes); }
};

// Never destroyed: streams may copy until the process has ended.
std::mutex& mutex = *new std::mutex;
auto& handles = *new std::map<AllocationHandle, std::shared_ptr<Memory>>;
auto& reserved = *new std::map<DevicePtr, std::size_t>;
auto& mappings = *new std::map<DevicePtr, std::shared_ptr<Mapping>>;
auto& registered = *new std::map<DevicePtr, std::size_t>;
AllocationHandle last_handle = 0;
std::atomic<std::size_t> taken{0};  // by this process; what others made does not count

std::size_t device_bytes() {
  const char* text = std::getenv("MEMSPAN_TEST_CUDA_BYTES");
  return text == nullptr ? std::size_t{1} << 30 : std::strtoull(text, nullptr, 10);
}

bool is_whole(std::size_t value) {
  return value % kGranularity == 0;
}

template <typename Map>
auto entry_at(Map& map, DevicePtr pointer) {
  auto found = map.upper_bound(pointer);
  return found == map.begin() ? map.end() : std::prev(found);
}

bool is_reserved(DevicePtr at, std::size_t bytes) {
  const auto range = entry_at(reserved, at);
  return range != reserved.end() && at - range->first <= range->second &&
         bytes <= range->second - (at - range->first);
}

// Whoever looks for it holds the mutex.
std::map<DevicePtr, std::shared_ptr<Mapping>>::iterator mapping_of(DevicePtr pointer) {
  const auto found = entry_at(mappings, pointer);
  return found != mappings.end() && pointer - found->first < found->second->bytes ? found
                                                                                  : mappings.end();
}

}  // namespace

Touchable find(DevicePtr pointer, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto range = entry_at(reserved, pointer);
  if (range == reserved.end() || pointer - range->first >= range->second)
    return {nullptr, reinterpret_cast<std::byte*>(pointer)};
  const auto found = mapping_of(pointer);
  if (found == mappings.end() || !found->second->is_accessible) return {};
  const std::size_t offset = pointer - found->first;
  if (bytes > found->second->bytes - offset) return {};
  return {found->second, found->second->own + offset};
}

}  // namespace standin

using namespace standin;

#define STANDIN_CHECK(needs) \
  if (const ResultCode result = check(needs); result != kSuccess) return result

STANDIN_EXPORT ResultCode cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  STANDIN_CHECK(Needs::kContext);
  const std::lock_guard lock(mutex);
  *total = device_bytes();
  *free = *total - taken;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemGetAllocationGranularity(std::size_t* bytes,
                                                        const AllocationProperties* properties,
                                                        int /*which*/) {
  STANDIN_CHECK(Needs::kDriver);
  if (properties->kind != kPinned || properties->where.kind != kOnDevice) return kInvalidValue;
  *bytes = kGranularity;
  return kSuccess;
}

// The address is a wish, as the driver's documentation has it.
STANDIN_EXPORT ResultCode cuMemAddressReserve(DevicePtr* at, std::size_t bytes,
                                              std::size_t alignment, DevicePtr wanted,
                                              unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  if (bytes == 0 || !is_whole(bytes) || !is_whole(alignment) || flags != 0) return kInvalidValue;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* base = MAP_FAILED;
  if (wanted != 0)
    base = mmap(reinterpret_cast<void*>(wanted), bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1,
                0);
  if (base == MAP_FAILED) {
    // Aligned: more than is needed, less what is not.
    base = mmap(nullptr, bytes + kGranularity, PROT_NONE, kFlags, -1, 0);
    if (base == MAP_FAILED) return kOutOfDeviceMemory;
    const auto begin = reinterpret_cast<DevicePtr>(base);
    const DevicePtr aligned = (begin + kGranularity - 1) / kGranularity * kGranularity;
    if (aligned != begin) munmap(base, aligned - begin);
    munmap(reinterpret_cast<void*>(aligned + bytes), begin + kGranularity - aligned);
    base = reinterpret_cast<void*>(aligned);
  }
  const std::lock_guard lock(mutex);
  *at = reinterpret_cast<DevicePtr>(base);
  reserved[*at] = bytes;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemAddressFree(DevicePtr at, std::size_t bytes) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = reserved.find(at);
  if (found == reserved.end() || found->second != bytes) return kInvalidValue;
  const auto next = mappings.lower_bound(at);
  if (next != mappings.end() && next->first < at + bytes) return kInvalidValue;
  reserved.erase(found);
  munmap(reinterpret_cast<void*>(at), bytes);
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemCreate(AllocationHandle* handle, std::size_t bytes,
                                      const AllocationProperties* properties,
                                      unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  if (bytes == 0 || !is_whole(bytes) || flags != 0 || properties->kind != kPinned ||
      properties->shareable_as != kFileDescriptor || properties->where.kind != kOnDevice ||
      properties->where.id < 0 || properties->where.id >= devices())
    return kInvalidValue;
  const std::lock_guard lock(mutex);
  if (bytes > device_bytes() - taken) return kOutOfDeviceMemory;
  const int descriptor = memfd_create("stand-in-device-memory", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
    return kOutOfDeviceMemory;
  taken += bytes;
  handles[++last_handle] = std::shared_ptr<Memory>(new Memory{descriptor, bytes}, [](Memory* gone) {
    taken -= gone->bytes;
    delete gone;
  });
  *handle = last_handle;
  // What was there before is anybody's.
  std::byte* own = static_cast<std::byte*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
  if (own == MAP_FAILED) return kOutOfDeviceMemory;
  for (std::size_t at = 0; at < bytes; at += 4096) own[at] = std::byte{0xee};
  munmap(own, bytes);
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemRelease(AllocationHandle handle) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  return handles.erase(handle) == 1 ? kSuccess : kInvalidValue;
}

STANDIN_EXPORT ResultCode cuMemMap(DevicePtr at, std::size_t bytes, std::size_t offset,
                                   AllocationHandle handle, unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = handles.find(handle);
  if (found == handles.end() || bytes == 0 || !is_whole(bytes) || offset != 0 || flags != 0 ||
      bytes > found->second->bytes || !is_reserved(at, bytes))
    return kInvalidValue;
  const auto next = mappings.lower_bound(at);
  if (next != mappings.end() && next->first < at + bytes) return kInvalidValue;
  if (mapping_of(at) != mappings.end()) return kInvalidValue;
  void* own =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, found->second->descriptor, 0);
  if (own == MAP_FAILED) return kOutOfDeviceMemory;
  mappings[at] = std::shared_ptr<Mapping>(
      new Mapping{found->second, bytes, static_cast<std::byte*>(own), false});
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemUnmap(DevicePtr at, std::size_t bytes) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = mappings.find(at);
  if (found == mappings.end() || found->second->bytes != bytes) return kInvalidValue;
  mappings.erase(found);
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemSetAccess(DevicePtr at, std::size_t bytes, const Access* access,
                                         std::size_t count) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = mappings.find(at);
  if (found == mappings.end() || found->second->bytes != bytes || count != 1 ||
      access->who.kind != kOnDevice || access->flags != kReadWrite)
    return kInvalidValue;
  found->second->is_accessible = true;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemExportToShareableHandle(void* shareable, AllocationHandle handle,
                                                       int kind, unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = handles.find(handle);
  if (found == handles.end() || kind != kFileDescriptor || flags != 0) return kInvalidValue;
  const int descriptor = fcntl(found->second->descriptor, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return kOutOfDeviceMemory;
  std::memcpy(shareable, &descriptor, sizeof descriptor);
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemImportFromShareableHandle(AllocationHandle* handle, void* shareable,
                                                         int kind) {
  STANDIN_CHECK(Needs::kDriver);
  struct stat info {};
  const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  if (kind != kFileDescriptor || fstat(given, &info) != 0 || info.st_size == 0 ||
      !is_whole(static_cast<std::size_t>(info.st_size)))
    return kInvalidValue;
  const int descriptor = fcntl(given, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return kOutOfDeviceMemory;
  const std::lock_guard lock(mutex);
  handles[++last_handle] =
      std::shared_ptr<Memory>(new Memory{descriptor, static_cast<std::size_t>(info.st_size)});
  *handle = last_handle;
  return kSuccess;
}

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
      *static_cast<int*>(value) = 0;
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
  bytes = (bytes + kGranularity - 1) / kGranularity * kGranularity;
  AllocationProperties properties;
  AllocationHandle handle = 0;
  ResultCode result = cuMemCreate(&handle, bytes, &properties, 0);
  if (result != kSuccess) return result;
  result = cuMemAddressReserve(at, bytes, 0, 0, 0);
  if (result == kSuccess) result = cuMemMap(*at, bytes, 0, handle, 0);
  const Access access;
  if (result == kSuccess) result = cuMemSetAccess(*at, bytes, &access, 1);
  cuMemRelease(handle);
  const std::lock_guard lock(mutex);
  if (result == kSuccess) mappings[*at]->is_allocated = true;
  return result;
}

STANDIN_EXPORT ResultCode cuMemFree_v2(DevicePtr at) {
  STANDIN_CHECK(Needs::kContext);
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
  if (found == mappings.end() || !found->second->is_allocated) return kInvalidValue;
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
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", shared.process, shared.descriptor);
  const int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return kInvalidValue;
  AllocationHandle imported = 0;
  ResultCode result = cuMemImportFromShareableHandle(
      &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)), kFileDescriptor);
  close(descriptor);
  if (result == kSuccess) result = cuMemAddressReserve(base, shared.bytes, 0, 0, 0);
  if (result == kSuccess) result = cuMemMap(*base, shared.bytes, 0, imported, 0);
  const Access access;
  if (result == kSuccess) result = cuMemSetAccess(*base, shared.bytes, &access, 1);
  cuMemRelease(imported);
  return result;
}

STANDIN_EXPORT ResultCode cuIpcCloseMemHandle(DevicePtr base) {
  return cuMemFree_v2(base);
}
