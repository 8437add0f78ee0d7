// SPDX-License-Identifier: Apache-2.0
// The symmetric heaps of the CANN SHMEM API: DEVICE_SIDE, which is the kind of calls that name
// none, is memory of the device that MEMSPAN_DEVICE names. Without one both kinds are the host's
// heap.
#include <memspan/memspan.h>

#include <bit>
#include <cstring>

#include "capi/access.h"
#include "capi/aclshmem/export.h"
#include "capi/errors.h"
#include "capi/kernel/device_job.h"
#include "capi/smem/stream_table.h"
#include "core/cpu.h"
#include "pgas/collective/collective.h"
#include "pgas/symmetric_memory.h"

namespace memspan::capi {
namespace {

// As in the OpenSHMEM API: two objects never share a cache line.
constexpr std::size_t kDefaultAlignment = kCacheLine;

// And what was given to the default stream before is done.
bool is_ready(const char* call) {
  if (is_started()) {
    finish_default_stream();
    return true;
  }
  shmem_failure(call, SHMEM_NOT_INITED,
                std::string("called before the start of the job or after its end") + kNotInAJob);
  return false;
}

// Both kinds are the host's heap in a job without a device.
bool is_device_kind(aclshmem_mem_type_t kind) {
  return kind == DEVICE_SIDE && is_started() && process_state.world->wants_device();
}

bool is_kind(const char* call, aclshmem_mem_type_t kind) {
  if (kind == HOST_SIDE || kind == DEVICE_SIDE) return true;
  shmem_failure(call, SHMEM_INVALID_PARAM,
                "mem_type is {}, allowed are HOST_SIDE (0) and DEVICE_SIDE (1)",
                static_cast<int>(kind));
  return false;
}

void* allocate(const char* call, std::size_t bytes, std::size_t alignment,
               aclshmem_mem_type_t kind) try {
  if (!is_kind(call, kind) || !is_ready(call)) return nullptr;
  Team& team = *process_state.world_team;
  if (bytes == 0) {
    // No bytes are a barrier all the same.
    shmem_result(call, team.barrier(call));
    return nullptr;
  }
  const bool is_device = is_device_kind(kind);
  const bool is_first = process_state.world->device_heap() == nullptr;
  auto result = is_device ? pgas::allocate_on_device(team, call, bytes, alignment)
                          : pgas::allocate(team, call, bytes, alignment);
  if (is_device && is_first && process_state.world->device_heap() != nullptr) show_device_heap();
  if (result.is_ok()) return result.value();
  shmem_result(call, result.status());
  return nullptr;
}
MEMSPAN_CATCH_IN(call, nullptr)

void* allocate_zeros(const char* call, std::size_t count, std::size_t size,
                     aclshmem_mem_type_t kind) try {
  if (!is_kind(call, kind)) return nullptr;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    shmem_failure(call, SHMEM_INVALID_PARAM,
                  "the number times the size is more than memory can be");
    return nullptr;
  }
  void* pointer = allocate(call, bytes, kDefaultAlignment, kind);
  if (pointer == nullptr) return nullptr;
  Status cleared;
  if (is_device_kind(kind))
    cleared = pgas::clear_on_device(*process_state.world_team, pointer, bytes);
  else
    std::memset(pointer, 0, bytes);
  // A peer's put must not come before the zeros.
  const Status all = process_state.world_team->barrier(call);
  return shmem_result(call, cleared.is_ok() ? all : cleared) == 0 ? pointer : nullptr;
}
MEMSPAN_CATCH_IN(call, nullptr)

void* allocate_aligned(const char* call, std::size_t alignment, std::size_t size,
                       aclshmem_mem_type_t kind) try {
  if (!is_kind(call, kind)) return nullptr;
  if (!std::has_single_bit(alignment)) {
    shmem_failure(call, SHMEM_INVALID_PARAM, "alignment is {}, allowed are powers of two",
                  alignment);
    return nullptr;
  }
  return allocate(call, size, alignment, kind);
}
MEMSPAN_CATCH_IN(call, nullptr)

// Fails for a block of the other kind; the result is the same for all callers.
bool is_of_kind(const char* call, const void* pointer, aclshmem_mem_type_t kind) {
  const bool is_device = process_state.routes.is_on_device(pointer, 1);
  if (!process_state.world->wants_device() || is_device == is_device_kind(kind)) return true;
  if (!is_device && !process_state.routes.heap.contains(pointer, 1)) return true;  // of neither
  shmem_failure(call, SHMEM_INVALID_PARAM,
                "{} is {} memory, and this frees {} memory (aclshmemx_free names the kind, "
                "aclshmem_free is for DEVICE_SIDE)",
                pointer, is_device ? "DEVICE_SIDE" : "HOST_SIDE",
                is_device ? "HOST_SIDE" : "DEVICE_SIDE");
  return false;
}

void release(const char* call, void* pointer, aclshmem_mem_type_t kind) try {
  if (!is_kind(call, kind) || pointer == nullptr || !is_ready(call)) return;
  if (!is_of_kind(call, pointer, kind)) return;
  const auto free = is_device_kind(kind) ? pgas::free_on_device : pgas::free;
  shmem_result(call, free(*process_state.world_team, call, pointer));
}
MEMSPAN_CATCH_IN(call)

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT void* aclshmem_malloc(size_t size) {
  return allocate(__func__, size, kDefaultAlignment, DEVICE_SIDE);
}
MEMSPAN_EXPORT void* aclshmem_calloc(size_t nmemb, size_t size) {
  return allocate_zeros(__func__, nmemb, size, DEVICE_SIDE);
}
MEMSPAN_EXPORT void* aclshmem_align(size_t alignment, size_t size) {
  return allocate_aligned(__func__, alignment, size, DEVICE_SIDE);
}
MEMSPAN_EXPORT void aclshmem_free(void* ptr) {
  release(__func__, ptr, DEVICE_SIDE);
}

MEMSPAN_EXPORT void* aclshmemx_malloc(size_t size, aclshmem_mem_type_t mem_type) {
  return allocate(__func__, size, kDefaultAlignment, mem_type);
}
MEMSPAN_EXPORT void* aclshmemx_calloc(size_t count, size_t size, aclshmem_mem_type_t mem_type) {
  return allocate_zeros(__func__, count, size, mem_type);
}
MEMSPAN_EXPORT void* aclshmemx_align(size_t alignment, size_t size, aclshmem_mem_type_t mem_type) {
  return allocate_aligned(__func__, alignment, size, mem_type);
}
MEMSPAN_EXPORT void aclshmemx_free(void* ptr, aclshmem_mem_type_t mem_type) {
  release(__func__, ptr, mem_type);
}
MEMSPAN_EXPORT void* aclshmemx_get_heap_base(aclshmem_mem_type_t mem_type) try {
  if (!is_kind(__func__, mem_type)) return nullptr;
  if (!is_device_kind(mem_type)) return memspan_heap_base();
  DeviceHeap* const heap = process_state.world->device_heap();
  return heap == nullptr ? nullptr : heap->base();
}
MEMSPAN_CATCH(nullptr)

MEMSPAN_EXPORT void* memspan_heap_base(void) {
  return is_started() ? reinterpret_cast<void*>(process_state.routes.heap.base) : nullptr;
}

MEMSPAN_EXPORT int memspan_keep_pages(const void* address, size_t bytes) try {
  if (!is_started()) return shmem_failure(__func__, SHMEM_NOT_INITED, "this process is in no job");
  return shmem_result(__func__, process_state.world->keep_pages(address, bytes));
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT void* aclshmem_ptr(void* ptr, int pe) {
  return mapped_address(ptr, pe);
}
