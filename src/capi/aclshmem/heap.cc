// SPDX-License-Identifier: Apache-2.0
// The symmetric heap of the CANN SHMEM API, and put and get in bytes.
#include <bit>
#include <cstring>

#include "capi/aclshmem/export.h"
#include "capi/errors.h"
#include "capi/process_state.h"
#include "capi/rma.h"
#include "core/cpu.h"
#include "pgas/collective/collective.h"
#include "pgas/symmetric_memory.h"

namespace memspan::capi {
namespace {

// As in the OpenSHMEM API: two objects never share a cache line.
constexpr std::size_t kDefaultAlignment = kCacheLine;

bool is_ready(const char* call) {
  if (is_started()) return true;
  shmem_failure(call, ShmemCode::kNotInited,
                "called before shmem_init_attr or after shmem_finalize");
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

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT void* aclshmem_malloc(size_t size) {
  return allocate("shmem_malloc", size, kDefaultAlignment);
}

MEMSPAN_EXPORT void* aclshmem_calloc(size_t nmemb, size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(nmemb, size, &bytes)) {
    shmem_failure("shmem_calloc", ShmemCode::kInvalidParam,
                  "nmemb times size is more than memory can be");
    return nullptr;
  }
  void* pointer = allocate("shmem_calloc", bytes, kDefaultAlignment);
  if (pointer == nullptr) return nullptr;
  std::memset(pointer, 0, bytes);
  // A peer's put must not come before the zeros.
  Status status = pgas::sync(*process_state.world_team, "shmem_calloc");
  return shmem_result("shmem_calloc", status) == 0 ? pointer : nullptr;
}

MEMSPAN_EXPORT void* aclshmem_align(size_t alignment, size_t size) {
  if (!std::has_single_bit(alignment)) {
    shmem_failure("shmem_align", ShmemCode::kInvalidParam,
                  "alignment is " + std::to_string(alignment) + ", allowed are powers of two");
    return nullptr;
  }
  return allocate("shmem_align", size, alignment);
}

MEMSPAN_EXPORT void aclshmem_free(void* ptr) {
  if (ptr == nullptr || !is_ready("shmem_free")) return;
  shmem_result("shmem_free", pgas::free(*process_state.world_team, "shmem_free", ptr));
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

MEMSPAN_EXPORT void aclshmem_putmem(void* dst, void* src, size_t elem_size, int32_t pe) {
  put<1>("shmem_putmem", dst, src, elem_size, pe);
}
MEMSPAN_EXPORT void aclshmem_getmem(void* dst, void* src, size_t elem_size, int32_t pe) {
  get<1>("shmem_getmem", dst, src, elem_size, pe);
}
MEMSPAN_EXPORT void aclshmem_putmem_nbi(void* dst, void* src, size_t elem_size, int32_t pe) {
  put<1>("shmem_putmem_nbi", dst, src, elem_size, pe);
}
MEMSPAN_EXPORT void aclshmem_getmem_nbi(void* dst, void* src, size_t elem_size, int32_t pe) {
  get<1>("shmem_getmem_nbi", dst, src, elem_size, pe);
}
