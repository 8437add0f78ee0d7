// SPDX-License-Identifier: Apache-2.0
// Names of earlier versions of OpenSHMEM and of SGI's SHMEM, for what has another name today.
#include "capi/openshmem/profiling_alias.h"
#include "capi/process_state.h"

using namespace memspan::capi;

#define MEMSPAN_DEPRECATED(result, name, parameters) \
  MEMSPAN_PROFILED_AS(, result, name, p##name, parameters)

// It cannot fail but by ending the process, and the number has never meant anything.
MEMSPAN_DEPRECATED(void, start_pes, ([[maybe_unused]] int npes)) {
  if (!is_started()) pshmem_init();
}
MEMSPAN_DEPRECATED(int, _my_pe, (void)) {
  return pshmem_my_pe();
}
MEMSPAN_DEPRECATED(int, _num_pes, (void)) {
  return pshmem_n_pes();
}
MEMSPAN_DEPRECATED(void*, shmalloc, (size_t size)) {
  return pshmem_malloc(size);
}
MEMSPAN_DEPRECATED(void*, shmemalign, (size_t alignment, size_t size)) {
  return pshmem_align(alignment, size);
}
MEMSPAN_DEPRECATED(void*, shrealloc, (void* ptr, size_t size)) {
  return pshmem_realloc(ptr, size);
}
MEMSPAN_DEPRECATED(void, shfree, (void* ptr)) {
  pshmem_free(ptr);
}

MEMSPAN_PROFILED(long, swap, (long* dest, long value, int pe)) {
  return pshmem_long_atomic_swap(dest, value, pe);
}

// Memory has been coherent for long: there is no cache to clear.
MEMSPAN_PROFILED(void, clear_cache_inv, (void)) {}
MEMSPAN_PROFILED(void, set_cache_inv, (void)) {}
MEMSPAN_PROFILED(void, clear_cache_line_inv, ([[maybe_unused]] void* dest)) {}
MEMSPAN_PROFILED(void, set_cache_line_inv, ([[maybe_unused]] void* dest)) {}
MEMSPAN_PROFILED(void, udcflush, (void)) {}
MEMSPAN_PROFILED(void, udcflush_line, ([[maybe_unused]] void* dest)) {}
