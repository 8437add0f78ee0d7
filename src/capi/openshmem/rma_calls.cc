// SPDX-License-Identifier: Apache-2.0
// Contiguous and strided put and get, single elements. A blocking put to mapped memory is delivered
// when it returns, and a link takes the data over before it returns, so the _nbi forms are the
// same.
#include "capi/fast_rma.h"

#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"

using namespace memspan::capi;
using memspan::CallKind;

#define MEMSPAN_BLOCK(operation, function, type, size)                                       \
  MEMSPAN_IN_CONTEXT(void, function, (type * dest, const type* source, size_t nelems),       \
                     operation<size>(call, dest, source, nelems, peer, context))             \
  MEMSPAN_IN_CONTEXT(void, function##_nbi, (type * dest, const type* source, size_t nelems), \
                     operation<size>(call, dest, source, nelems, peer, context))
// Strides count elements: single ones, or blocks.
#define MEMSPAN_STRIDED(kind, function, type, size)                                              \
  MEMSPAN_IN_CONTEXT(                                                                            \
      void, function,                                                                            \
      (type * dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems),            \
      move_strided<CallKind::kind>(call, dest, source, Strides{dst, sst, 1, nelems}, size, peer, \
                                   context))
#define MEMSPAN_STRIDED_BLOCKS(kind, function, type, size)                                      \
  MEMSPAN_IN_CONTEXT(                                                                           \
      void, function,                                                                           \
      (type * dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,             \
       size_t nblocks),                                                                         \
      move_strided<CallKind::kind>(call, dest, source, Strides{dst, sst, bsize, nblocks}, size, \
                                   peer, context))

#define MEMSPAN_RMA_TYPED(name, type)                               \
  MEMSPAN_IN_CONTEXT(void, name##_p, (type * dest, type value),     \
                     put_value(call, dest, value, peer, context))   \
  MEMSPAN_IN_CONTEXT(type, name##_g, (const type* source),          \
                     return get_value(call, source, peer, context)) \
  MEMSPAN_BLOCK(put, name##_put, type, sizeof(type))                \
  MEMSPAN_BLOCK(get, name##_get, type, sizeof(type))                \
  MEMSPAN_STRIDED(kPut, name##_iput, type, sizeof(type))            \
  MEMSPAN_STRIDED(kGet, name##_iget, type, sizeof(type))            \
  MEMSPAN_STRIDED_BLOCKS(kPut, name##_ibput, type, sizeof(type))    \
  MEMSPAN_STRIDED_BLOCKS(kGet, name##_ibget, type, sizeof(type))
MEMSPAN_RMA_TYPES(MEMSPAN_RMA_TYPED)

#define MEMSPAN_RMA_SIZED(bits, size)                   \
  MEMSPAN_BLOCK(put, put##bits, void, size)             \
  MEMSPAN_BLOCK(get, get##bits, void, size)             \
  MEMSPAN_STRIDED(kPut, iput##bits, void, size)         \
  MEMSPAN_STRIDED(kGet, iget##bits, void, size)         \
  MEMSPAN_STRIDED_BLOCKS(kPut, ibput##bits, void, size) \
  MEMSPAN_STRIDED_BLOCKS(kGet, ibget##bits, void, size)
MEMSPAN_SIZES(MEMSPAN_RMA_SIZED)

MEMSPAN_BLOCK(put, putmem, void, 1)
MEMSPAN_BLOCK(get, getmem, void, 1)
