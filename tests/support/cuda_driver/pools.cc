// SPDX-License-Identifier: Apache-2.0
// The stand-in's asynchronous pools: each allocation is memory of its own, and the pool is a memfd
// that other processes know it by. Streams are not waited for: what is allocated is there at once.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <set>

#include "memory_state.h"

namespace memspan::cuda {

struct PoolObject {
  int descriptor = -1;
  bool is_shareable = false;
  bool is_shared = false;    // by this process
  bool is_imported = false;  // of another one
};

}  // namespace memspan::cuda

namespace standin {
namespace {

// The driver's properties of a pool.
struct PoolProperties {
  int kind;
  int shareable_as;
  Location where;
  void* unused;
  std::size_t most_bytes;
  unsigned short usage;
  unsigned char reserved[54];
};

// What names an allocation to another process.
struct Named {
  ino_t pool;
  pid_t process;
  int descriptor;
  std::size_t bytes;
};
static_assert(sizeof(Named) <= sizeof(PoolPointer));

ino_t number_of(const PoolObject& pool) {
  struct stat info {};
  return fstat(pool.descriptor, &info) == 0 ? info.st_ino : 0;
}

// All that there are, guarded by the mutex: what a program does not destroy is no leak of it.
std::set<PoolHandle>& pools = *new std::set<PoolHandle>;

PoolHandle add_pool(const PoolObject& made) {
  auto* const pool = new PoolObject(made);
  const std::lock_guard lock(mutex);
  pools.insert(pool);
  return pool;
}

PoolHandle make_pool(bool is_shareable) {
  return add_pool({memfd_create("stand-in-pool", MFD_CLOEXEC), is_shareable, false, false});
}

PoolHandle default_pool() {
  static PoolHandle const made = make_pool(false);
  return made;
}

}  // namespace
}  // namespace standin

using namespace standin;

STANDIN_EXPORT ResultCode cuMemPoolCreate(PoolHandle* pool, const PoolProperties* properties) {
  STANDIN_CHECK(Needs::kDriver);
  if (properties->kind != kPinned || properties->where.kind != kOnDevice ||
      (properties->shareable_as != 0 && properties->shareable_as != kFileDescriptor))
    return kInvalidValue;
  *pool = make_pool(properties->shareable_as == kFileDescriptor);
  return kSuccess;
}

// What is left of it lives on.
STANDIN_EXPORT ResultCode cuMemPoolDestroy(PoolHandle pool) {
  STANDIN_CHECK(Needs::kDriver);
  if (pool == nullptr || pool == default_pool()) return kInvalidValue;
  const std::lock_guard lock(mutex);
  if (pools.erase(pool) == 0) return kInvalidValue;
  close(pool->descriptor);
  for (auto& [at, mapping] : mappings)
    if (mapping->pool == pool) mapping->pool = nullptr;
  delete pool;
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemAllocFromPoolAsync(DevicePtr* at, std::size_t bytes, PoolHandle pool,
                                                  StreamHandle /*stream*/) {
  STANDIN_CHECK(Needs::kContext);
  if (bytes == 0 || pool->is_imported) return kInvalidValue;
  return map_new(at, bytes, Maker::kPool, pool);
}

STANDIN_EXPORT ResultCode cuMemAllocAsync(DevicePtr* at, std::size_t bytes, StreamHandle stream) {
  return cuMemAllocFromPoolAsync(at, bytes, default_pool(), stream);
}

STANDIN_EXPORT ResultCode cuMemPoolExportToShareableHandle(void* shareable, PoolHandle pool,
                                                           int kind, unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  if (pool == nullptr || !pool->is_shareable || kind != kFileDescriptor || flags != 0)
    return kInvalidValue;
  const int descriptor = fcntl(pool->descriptor, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return kOutOfDeviceMemory;
  pool->is_shared = true;
  std::memcpy(shareable, &descriptor, sizeof descriptor);
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemPoolImportFromShareableHandle(PoolHandle* pool, void* shareable,
                                                             int kind, unsigned long long flags) {
  STANDIN_CHECK(Needs::kDriver);
  struct stat info {};
  const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  if (kind != kFileDescriptor || flags != 0 || fstat(given, &info) != 0 || info.st_size != 0)
    return kInvalidValue;
  *pool = add_pool({fcntl(given, F_DUPFD_CLOEXEC, 0), false, false, true});
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemPoolSetAccess(PoolHandle pool, const Access* access,
                                             std::size_t count) {
  STANDIN_CHECK(Needs::kDriver);
  return pool != nullptr && count == 1 && access->who.kind == kOnDevice ? kSuccess : kInvalidValue;
}

// Of a pool that has been exported.
STANDIN_EXPORT ResultCode cuMemPoolExportPointer(PoolPointer* shared, DevicePtr pointer) {
  STANDIN_CHECK(Needs::kContext);
  const std::lock_guard lock(mutex);
  const auto found = mappings.find(pointer);
  if (found == mappings.end() || found->second->pool == nullptr || !found->second->pool->is_shared)
    return kInvalidValue;
  const Named named{number_of(*found->second->pool), getpid(), found->second->memory->descriptor,
                    found->second->bytes};
  std::memcpy(shared->bytes, &named, sizeof named);
  return kSuccess;
}

STANDIN_EXPORT ResultCode cuMemPoolImportPointer(DevicePtr* at, PoolHandle pool,
                                                 PoolPointer* shared) {
  STANDIN_CHECK(Needs::kContext);
  Named named;
  std::memcpy(&named, shared->bytes, sizeof named);
  if (!pool->is_imported || number_of(*pool) != named.pool) return kInvalidValue;
  const int descriptor = open_of(named.process, named.descriptor);
  if (descriptor < 0) return kInvalidValue;
  const ResultCode result = map_imported(at, descriptor, named.bytes, Maker::kPool, pool);
  close(descriptor);
  return result;
}
