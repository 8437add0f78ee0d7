// SPDX-License-Identifier: Apache-2.0
// Contiguous put and get, single elements. A blocking put to mapped memory is delivered when it
// returns, and a link takes the data over before it returns, so the _nbi forms are the same.
#include "capi/fast_rma.h"

#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"

using namespace memspan::capi;

#define MEMSPAN_ELEMENT(name, type)                                                            \
  MEMSPAN_FLAT_PROFILED(void, name##_p, (type * dest, type value, int pe)) {                   \
    put_value("shmem_" #name "_p", dest, value, pe);                                           \
  }                                                                                            \
  MEMSPAN_FLAT_PROFILED(void, ctx_##name##_p,                                                  \
                        (shmem_ctx_t ctx, type * dest, type value, int pe)) {                  \
    constexpr const char* kCall = "shmem_ctx_" #name "_p";                                     \
    put_value(kCall, dest, value, peer_of(kCall, ctx, pe), number_of(ctx));                    \
  }                                                                                            \
  MEMSPAN_FLAT_PROFILED(type, name##_g, (const type* source, int pe)) {                        \
    return get_value("shmem_" #name "_g", source, pe);                                         \
  }                                                                                            \
  MEMSPAN_FLAT_PROFILED(type, ctx_##name##_g, (shmem_ctx_t ctx, const type* source, int pe)) { \
    constexpr const char* kCall = "shmem_ctx_" #name "_g";                                     \
    return get_value(kCall, source, peer_of(kCall, ctx, pe), number_of(ctx));                  \
  }
MEMSPAN_RMA_TYPES(MEMSPAN_ELEMENT)

// One put or get of `size`-byte elements with its context form.
#define MEMSPAN_BLOCK(operation, function, type, size)                                     \
  MEMSPAN_FLAT_PROFILED(void, function,                                                    \
                        (type * dest, const type* source, size_t nelems, int pe)) {        \
    operation<size>("shmem_" #function, dest, source, nelems, pe);                         \
  }                                                                                        \
  MEMSPAN_FLAT_PROFILED(                                                                   \
      void, ctx_##function,                                                                \
      (shmem_ctx_t ctx, type * dest, const type* source, size_t nelems, int pe)) {         \
    constexpr const char* kCall = "shmem_ctx_" #function;                                  \
    operation<size>(kCall, dest, source, nelems, peer_of(kCall, ctx, pe), number_of(ctx)); \
  }

#define MEMSPAN_RMA_TYPED(name, type)                    \
  MEMSPAN_BLOCK(put, name##_put, type, sizeof(type))     \
  MEMSPAN_BLOCK(get, name##_get, type, sizeof(type))     \
  MEMSPAN_BLOCK(put, name##_put_nbi, type, sizeof(type)) \
  MEMSPAN_BLOCK(get, name##_get_nbi, type, sizeof(type))
MEMSPAN_RMA_TYPES(MEMSPAN_RMA_TYPED)

#define MEMSPAN_RMA_SIZED(bits, size)             \
  MEMSPAN_BLOCK(put, put##bits, void, size)       \
  MEMSPAN_BLOCK(get, get##bits, void, size)       \
  MEMSPAN_BLOCK(put, put##bits##_nbi, void, size) \
  MEMSPAN_BLOCK(get, get##bits##_nbi, void, size)
MEMSPAN_SIZES(MEMSPAN_RMA_SIZED)

MEMSPAN_BLOCK(put, putmem, void, 1)
MEMSPAN_BLOCK(get, getmem, void, 1)
MEMSPAN_BLOCK(put, putmem_nbi, void, 1)
MEMSPAN_BLOCK(get, getmem_nbi, void, 1)
