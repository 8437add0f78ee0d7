// SPDX-License-Identifier: Apache-2.0
// Strided put and get: single elements (iput, iget) and blocks (ibput, ibget).
#include "capi/strided.h"

#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"

using namespace memspan::capi;

#define MEMSPAN_ELEMENTS(operation, function, type, size)                                       \
  MEMSPAN_PROFILED(                                                                             \
      void, function,                                                                           \
      (type * dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)) { \
    operation("shmem_" #function, dest, source, Strides{dst, sst, 1, nelems}, size, pe);        \
  }                                                                                             \
  MEMSPAN_PROFILED(void, ctx_##function,                                                        \
                   (shmem_ctx_t ctx, type * dest, const type* source, ptrdiff_t dst,            \
                    ptrdiff_t sst, size_t nelems, int pe)) {                                    \
    constexpr const char* kCall = "shmem_ctx_" #function;                                       \
    operation(kCall, dest, source, Strides{dst, sst, 1, nelems}, size, peer_of(kCall, ctx, pe), \
              number_of(ctx));                                                                  \
  }

#define MEMSPAN_BLOCKS(operation, function, type, size)                                          \
  MEMSPAN_PROFILED(void, function,                                                               \
                   (type * dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, \
                    size_t nblocks, int pe)) {                                                   \
    operation("shmem_" #function, dest, source, Strides{dst, sst, bsize, nblocks}, size, pe);    \
  }                                                                                              \
  MEMSPAN_PROFILED(void, ctx_##function,                                                         \
                   (shmem_ctx_t ctx, type * dest, const type* source, ptrdiff_t dst,             \
                    ptrdiff_t sst, size_t bsize, size_t nblocks, int pe)) {                      \
    constexpr const char* kCall = "shmem_ctx_" #function;                                        \
    operation(kCall, dest, source, Strides{dst, sst, bsize, nblocks}, size,                      \
              peer_of(kCall, ctx, pe), number_of(ctx));                                          \
  }

#define MEMSPAN_STRIDED_TYPED(name, type)                        \
  MEMSPAN_ELEMENTS(put_strided, name##_iput, type, sizeof(type)) \
  MEMSPAN_ELEMENTS(get_strided, name##_iget, type, sizeof(type)) \
  MEMSPAN_BLOCKS(put_strided, name##_ibput, type, sizeof(type))  \
  MEMSPAN_BLOCKS(get_strided, name##_ibget, type, sizeof(type))
MEMSPAN_RMA_TYPES(MEMSPAN_STRIDED_TYPED)

#define MEMSPAN_STRIDED_SIZED(bits, size)               \
  MEMSPAN_ELEMENTS(put_strided, iput##bits, void, size) \
  MEMSPAN_ELEMENTS(get_strided, iget##bits, void, size) \
  MEMSPAN_BLOCKS(put_strided, ibput##bits, void, size)  \
  MEMSPAN_BLOCKS(get_strided, ibget##bits, void, size)
MEMSPAN_SIZES(MEMSPAN_STRIDED_SIZED)
