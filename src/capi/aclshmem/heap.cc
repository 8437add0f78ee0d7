// SPDX-License-Identifier: Apache-2.0
// The symmetric heap of the CANN SHMEM API. Both kinds of memory are one heap.
#include <memspan/memspan.h>

#include <bit>
#include <cstring>

#include "capi/aclshmem/default_stream.h"
#include "capi/aclshmem/export.h"
#include "capi/errors.h"
#include "capi/process_state.h"
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
  shmem_failure(call, ShmemCode::kNotInited,
                "called before aclshmemx_init_attr or after aclshmem_finalize");
  return false;
}

void* allocate(const char* call, std::size_t bytes, std::size_t alignment) {
  if (!is_ready(call)) return nullptr;
  Team& team = *process_state.world_team;
  if (bytes == 0) {
    // No bytes are a barrier all the same.
    shmem_result(call, pgas::sync(team, call));
    return nullptr;
  }
  auto result = pgas::allocate(team, call, bytes, alignment);
  if (result.is_ok()) return result.value();
  shmem_result(call, result.status());
  return nullptr;
}

void* allocate_zeros(const char* call, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    shmem_failure(call, ShmemCode::kInvalidParam,
                  "the number times the size is more than memory can be");
    return nullptr;
  }
  void* pointer = allocate(call, bytes, kDefaultAlignment);
  if (pointer == nullptr) return nullptr;
  std::memset(pointer, 0, bytes);
  // A peer's put must not come before the zeros.
  return shmem_result(call, pgas::sync(*process_state.world_team, call)) == 0 ? pointer : nullptr;
}

void* allocate_aligned(const char* call, std::size_t alignment, std::size_t size) {
  if (!std::has_single_bit(alignment)) {
    shmem_failure(call, ShmemCode::kInvalidParam,
                  "alignment is " + std::to_string(alignment) + ", allowed are powers of two");
    return nullptr;
  }
  return allocate(call, size, alignment);
}

void release(const char* call, void* pointer) {
  if (pointer != nullptr && is_ready(call))
    shmem_result(call, pgas::free(*process_state.world_team, call, pointer));
}

bool is_kind(const char* call, aclshmem_mem_type_t kind) {
  if (kind == HOST_SIDE || kind == DEVICE_SIDE) return true;
  shmem_failure(call, ShmemCode::kInvalidParam,
                "mem_type is " + std::to_string(static_cast<int>(kind)) +
                    ", allowed are HOST_SIDE (0) and DEVICE_SIDE (1)");
  return false;
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT void* aclshmem_malloc(size_t size) {
  return allocate("aclshmem_malloc", size, kDefaultAlignment);
}
MEMSPAN_EXPORT void* aclshmem_calloc(size_t nmemb, size_t size) {
  return allocate_zeros("aclshmem_calloc", nmemb, size);
}
MEMSPAN_EXPORT void* aclshmem_align(size_t alignment, size_t size) {
  return allocate_aligned("aclshmem_align", alignment, size);
}
MEMSPAN_EXPORT void aclshmem_free(void* ptr) {
  release("aclshmem_free", ptr);
}

MEMSPAN_EXPORT void* aclshmemx_malloc(size_t size, aclshmem_mem_type_t mem_type) {
  constexpr const char* kCall = "aclshmemx_malloc";
  return is_kind(kCall, mem_type) ? allocate(kCall, size, kDefaultAlignment) : nullptr;
}
MEMSPAN_EXPORT void* aclshmemx_calloc(size_t count, size_t size, aclshmem_mem_type_t mem_type) {
  constexpr const char* kCall = "aclshmemx_calloc";
  return is_kind(kCall, mem_type) ? allocate_zeros(kCall, count, size) : nullptr;
}
MEMSPAN_EXPORT void* aclshmemx_align(size_t alignment, size_t size, aclshmem_mem_type_t mem_type) {
  constexpr const char* kCall = "aclshmemx_align";
  return is_kind(kCall, mem_type) ? allocate_aligned(kCall, alignment, size) : nullptr;
}
MEMSPAN_EXPORT void aclshmemx_free(void* ptr, aclshmem_mem_type_t mem_type) {
  constexpr const char* kCall = "aclshmemx_free";
  if (is_kind(kCall, mem_type)) release(kCall, ptr);
}
MEMSPAN_EXPORT void* aclshmemx_get_heap_base(aclshmem_mem_type_t mem_type) {
  return is_kind("aclshmemx_get_heap_base", mem_type) ? memspan_heap_base() : nullptr;
}

MEMSPAN_EXPORT void* memspan_heap_base(void) {
  return is_started() ? reinterpret_cast<void*>(process_state.routes.heap.base) : nullptr;
}

MEMSPAN_EXPORT int memspan_keep_pages(const void* address, size_t bytes) {
  constexpr const char* kCall = "memspan_keep_pages";
  if (!is_started())
    return shmem_failure(kCall, ShmemCode::kNotInited, "this process is in no job");
  return shmem_result(kCall, process_state.world->keep_pages(address, bytes));
}

MEMSPAN_EXPORT void* aclshmem_ptr(void* ptr, int pe) {
  const Route* route = process_state.routes.find(ptr, 1, pe);
  return route == nullptr || !route->is_direct() ? nullptr : route->address(ptr);
}
