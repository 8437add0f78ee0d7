// SPDX-License-Identifier: Apache-2.0
// Strided put and get: single elements (iput, iget) and blocks (ibput, ibget).
#include "capi/access.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"
#include "pgas/rma.h"

namespace memspan::capi {
namespace {

using pgas::Strides;

// The bytes that the symmetric side of a strided access touches, first to last.
struct Extent {
  const void* first;
  std::size_t bytes;  // saturated, so that an overflow is found to be out of range
};

Extent extent_of(const void* address, std::ptrdiff_t stride, const Strides& strides,
                 std::size_t element_bytes) {
  const std::size_t step =
      stride < 0 ? -static_cast<std::size_t>(stride) : static_cast<std::size_t>(stride);
  const std::size_t block = bytes_of(strides.block, element_bytes);
  const std::size_t bytes = span_of(strides.count, bytes_of(step, element_bytes), block);
  const auto first = reinterpret_cast<std::uintptr_t>(address) - (stride < 0 ? bytes - block : 0);
  return {reinterpret_cast<const void*>(first), bytes};
}

bool is_empty(const Strides& strides) {
  return strides.count == 0 || strides.block == 0;
}

void put_strided(const char* call, void* dest, const void* source, const Strides& strides,
                 std::size_t element_bytes, int pe, ContextNumber context = kDefaultContext) {
  if (is_empty(strides)) return require_started(call);
  Extent extent = extent_of(dest, strides.dest, strides, element_bytes);
  const Route& route = reach(call, "dest", extent.first, extent.bytes, pe);
  require_not_null(call, "source", source);
  require(call, pgas::put_strided(routes_of(context), route, dest, source, strides, element_bytes));
}

void get_strided(const char* call, void* dest, const void* source, const Strides& strides,
                 std::size_t element_bytes, int pe, ContextNumber context = kDefaultContext) {
  if (is_empty(strides)) return require_started(call);
  Extent extent = extent_of(source, strides.source, strides, element_bytes);
  const Route& route = reach(call, "source", extent.first, extent.bytes, pe);
  require_not_null(call, "dest", dest);
  require(call, pgas::get_strided(routes_of(context), route, dest, source, strides, element_bytes));
}

}  // namespace
}  // namespace memspan::capi

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

#define MEMSPAN_TYPED(name, type)                                \
  MEMSPAN_ELEMENTS(put_strided, name##_iput, type, sizeof(type)) \
  MEMSPAN_ELEMENTS(get_strided, name##_iget, type, sizeof(type)) \
  MEMSPAN_BLOCKS(put_strided, name##_ibput, type, sizeof(type))  \
  MEMSPAN_BLOCKS(get_strided, name##_ibget, type, sizeof(type))
MEMSPAN_RMA_TYPES(MEMSPAN_TYPED)

#define MEMSPAN_SIZED(bits, size)                       \
  MEMSPAN_ELEMENTS(put_strided, iput##bits, void, size) \
  MEMSPAN_ELEMENTS(get_strided, iget##bits, void, size) \
  MEMSPAN_BLOCKS(put_strided, ibput##bits, void, size)  \
  MEMSPAN_BLOCKS(get_strided, ibget##bits, void, size)
MEMSPAN_SIZES(MEMSPAN_SIZED)
