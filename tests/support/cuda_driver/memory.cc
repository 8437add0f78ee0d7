// SPDX-License-Identifier: Apache-2.0
// The stand-in's virtual memory: allocations are memfds, handles of them shared with other
// processes are descriptors, and addresses are ranges without access.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "memory_state.h"

namespace standin {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;
constexpr std::size_t kReservedAtOnce = std::size_t{32} << 20;
constexpr const char* kMemoryName = "stand-in-memory-of-device-";  // and its number

AllocationHandle last_handle = 0;
std::atomic<std::size_t> taken{0};  // by this process; what others made does not count

std::size_t device_bytes() {
  const char* text = std::getenv("MEMSPAN_TEST_CUDA_BYTES");
  return text == nullptr ? std::size_t{1} << 30 : std::strtoull(text, nullptr, 10);
}

// Whose memory another process has shared.
Ordinal device_of(int descriptor) {
  char link[256] = {};
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  if (readlink(path.c_str(), link, sizeof link - 1) < 0) return 0;
  const char* const name = std::strstr(link, kMemoryName);
  return name == nullptr ? 0 : std::atoi(name + std::strlen(kMemoryName));
}

bool is_whole(std::size_t value) {
  return value % kGranularity == 0;
}

// The mappings that a range consists of, whole ones without a gap; none when it does not.
std::vector<Mappings::iterator> mappings_of(DevicePtr at, std::size_t bytes) {
  std::vector<Mappings::iterator> found;
  const DevicePtr end = at + bytes;
  while (at < end) {
    const auto next = mappings.find(at);
    if (next == mappings.end() || next->second->bytes > end - at) return {};
    found.push_back(next);
    at += next->second->bytes;
  }
  return found;
}

bool is_reserved(DevicePtr at, std::size_t bytes) {
  const auto range = entry_at(reserved, at);
  return range != reserved.end() && at - range->first <= range->second &&
         bytes <= range->second - (at - range->first);
}

}  // namespace

std::mutex& mutex = *new std::mutex;
std::map<AllocationHandle, Held>& handles = *new std::map<AllocationHandle, Held>;
std::map<DevicePtr, std::size_t>& reserved = *new std::map<DevicePtr, std::size_t>;
Mappings& mappings = *new Mappings;

Mappings::iterator mapping_of(DevicePtr pointer) {
  const auto found = entry_at(mappings, pointer);
  return found != mappings.end() && pointer - found->first < found->second->bytes ? found
                                                                                  : mappings.end();
}

Touchable find(DevicePtr pointer, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto range = entry_at(reserved, pointer);
  if (range == reserved.end() || pointer - range->first >= range->second)
    return {nullptr, reinterpret_cast<std::byte*>(pointer), bytes};
  const auto found = mapping_of(pointer);
  if (found == mappings.end() || !found->second->is_accessible) return {};
  const std::size_t offset = pointer - found->first;
  return {found->second, found->second->own + offset,
          std::min(bytes, found->second->bytes - offset)};
}

bool is_touchable(DevicePtr pointer, std::size_t bytes) {
  while (bytes > 0) {
    const Touchable part = find(pointer, bytes);
    if (part.at == nullptr) return false;
    pointer += part.bytes;
    bytes -= part.bytes;
  }
  return true;
}

}  // namespace standin

using namespace standin;

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

// The address is a wish, as the driver's documentation has it. Driver 580 grants it only at
// multiples of 32 MiB, and not always to smaller ranges.
STANDIN_EXPORT ResultCode cuMemAddressReserve(DevicePtr* at, std::size_t bytes,
                                              std::size_t alignment, DevicePtr wanted,
                                              unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  if (bytes == 0 || !is_whole(bytes) || !is_whole(alignment) || flags != 0) return kInvalidValue;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* base = MAP_FAILED;
  if (wanted != 0 && wanted % kReservedAtOnce == 0 && bytes >= kReservedAtOnce)
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
      (properties->shareable_as != 0 && properties->shareable_as != kFileDescriptor) ||
      properties->where.kind != kOnDevice || properties->where.id < 0 ||
      properties->where.id >= devices())
    return kInvalidValue;
  const std::lock_guard lock(mutex);
  if (bytes > device_bytes() - taken) return kOutOfDeviceMemory;
  const std::string name = kMemoryName + std::to_string(properties->where.id);
  const int descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
    return kOutOfDeviceMemory;
  taken += bytes;
  const bool is_shareable = properties->shareable_as == kFileDescriptor;
  *handle = ++last_handle;
  handles[*handle] = {std::shared_ptr<Memory>(
      new Memory{descriptor, bytes, is_shareable, *handle, properties->where.id}, [](Memory* gone) {
        taken -= gone->bytes;
        delete gone;
      })};
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
  const auto found = handles.find(handle);
  if (found == handles.end()) return kInvalidValue;
  if (--found->second.count == 0) handles.erase(found);
  return kSuccess;
}

// The handle that was mapped, once more: it need not exist any more.
STANDIN_EXPORT ResultCode cuMemRetainAllocationHandle(AllocationHandle* handle, void* at) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = mapping_of(reinterpret_cast<DevicePtr>(at));
  if (found == mappings.end() || found->second->maker != Maker::kMap) return kInvalidValue;
  const std::shared_ptr<Memory>& memory = found->second->memory;
  const auto [held, is_new] = handles.try_emplace(memory->handle, Held{memory});
  if (!is_new) ++held->second.count;
  *handle = memory->handle;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemMap(DevicePtr at, std::size_t bytes, std::size_t offset,
                                   AllocationHandle handle, unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = handles.find(handle);
  if (found == handles.end() || bytes == 0 || !is_whole(bytes) || offset != 0 || flags != 0 ||
      bytes > found->second.memory->bytes || !is_reserved(at, bytes))
    return kInvalidValue;
  const auto next = mappings.lower_bound(at);
  if (next != mappings.end() && next->first < at + bytes) return kInvalidValue;
  if (mapping_of(at) != mappings.end()) return kInvalidValue;
  void* own =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, found->second.memory->descriptor, 0);
  if (own == MAP_FAILED) return kOutOfDeviceMemory;
  mappings[at] = std::shared_ptr<Mapping>(
      new Mapping{found->second.memory, bytes, static_cast<std::byte*>(own)});
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemUnmap(DevicePtr at, std::size_t bytes) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto whole = mappings_of(at, bytes);
  if (whole.empty()) return kInvalidValue;
  for (const auto& one : whole) mappings.erase(one);
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemSetAccess(DevicePtr at, std::size_t bytes, const Access* access,
                                         std::size_t count) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto whole = mappings_of(at, bytes);
  if (whole.empty() || count != 1 || access->who.kind != kOnDevice || access->flags != kReadWrite)
    return kInvalidValue;
  for (const auto& one : whole) one->second->is_accessible = true;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemExportToShareableHandle(void* shareable, AllocationHandle handle,
                                                       int kind, unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  const std::lock_guard lock(mutex);
  const auto found = handles.find(handle);
  if (found == handles.end() || !found->second.memory->is_shareable || kind != kFileDescriptor ||
      flags != 0)
    return kInvalidValue;
  const int descriptor = fcntl(found->second.memory->descriptor, F_DUPFD_CLOEXEC, 0);
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
  *handle = ++last_handle;
  handles[*handle] = {std::shared_ptr<Memory>(new Memory{
      descriptor, static_cast<std::size_t>(info.st_size), true, *handle, device_of(descriptor)})};
  return kSuccess;
}
