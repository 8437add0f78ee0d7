// SPDX-License-Identifier: Apache-2.0
// Names of earlier versions of OpenSHMEM and of SGI's SHMEM, for what has another name today.
#include "capi/fast_atomic.h"
#include "capi/openshmem/profiling_alias.h"

using namespace memspan::capi;
using memspan::AtomicKind;

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

#define MEMSPAN_DEPRECATED_EXTENDED(name, type)                                                    \
  MEMSPAN_PROFILED(type, name##_fetch, (const type* source, int pe)) {                             \
    return fetch_atomic<AtomicKind::kFetch, type>("shmem_" #name "_fetch", source,                 \
                                                  static_cast<type>(0), static_cast<type>(0), pe); \
  }                                                                                                \
  MEMSPAN_PROFILED(void, name##_set, (type * dest, type value, int pe)) {                          \
    change_atomic<AtomicKind::kSet, type>("shmem_" #name "_set", dest, value, pe);                 \
  }                                                                                                \
  MEMSPAN_PROFILED(type, name##_swap, (type * dest, type value, int pe)) {                         \
    return fetch_atomic<AtomicKind::kSwap, type>("shmem_" #name "_swap", dest, value,              \
                                                 static_cast<type>(0), pe);                        \
  }
MEMSPAN_EXTENDED_AMO_TYPES(MEMSPAN_DEPRECATED_EXTENDED)

#define MEMSPAN_DEPRECATED_STANDARD(name, type)                                                   \
  MEMSPAN_PROFILED(type, name##_cswap, (type * dest, type cond, type value, int pe)) {            \
    return fetch_atomic<AtomicKind::kCompareSwap, type>("shmem_" #name "_cswap", dest, value,     \
                                                        cond, pe);                                \
  }                                                                                               \
  MEMSPAN_PROFILED(type, name##_fadd, (type * dest, type value, int pe)) {                        \
    return fetch_atomic<AtomicKind::kAdd, type>("shmem_" #name "_fadd", dest, value,              \
                                                static_cast<type>(0), pe);                        \
  }                                                                                               \
  MEMSPAN_PROFILED(type, name##_finc, (type * dest, int pe)) {                                    \
    return fetch_atomic<AtomicKind::kAdd, type>("shmem_" #name "_finc", dest,                     \
                                                static_cast<type>(1), static_cast<type>(0), pe);  \
  }                                                                                               \
  MEMSPAN_PROFILED(void, name##_add, (type * dest, type value, int pe)) {                         \
    change_atomic<AtomicKind::kAdd, type>("shmem_" #name "_add", dest, value, pe);                \
  }                                                                                               \
  MEMSPAN_PROFILED(void, name##_inc, (type * dest, int pe)) {                                     \
    change_atomic<AtomicKind::kAdd, type>("shmem_" #name "_inc", dest, static_cast<type>(1), pe); \
  }
MEMSPAN_STANDARD_AMO_TYPES(MEMSPAN_DEPRECATED_STANDARD)

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
