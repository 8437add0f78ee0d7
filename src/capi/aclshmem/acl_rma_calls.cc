// SPDX-License-Identifier: Apache-2.0
// Put and get of the CANN SHMEM API, and put with signal. Its signals are 32-bit words,
// under whatever pointer type.
#include "capi/fast_rma.h"

#include "capi/aclshmem/export.h"
#include "capi/aclshmem/types.def"
#include "capi/fast_atomic.h"
#include "pgas/rma.h"

namespace memspan::capi {
namespace {

struct Signal {
  void* word;
  std::int32_t value;
  int op;
};

// The data, then the signal.
void put_signal(const char* call, void* dest, const void* source, std::size_t bytes,
                const Signal& signal, int pe) try {
  if (signal.op != ACLSHMEM_SIGNAL_SET && signal.op != ACLSHMEM_SIGNAL_ADD)
    end_for_bad_number(call, "sig_op", signal.op, ACLSHMEM_SIGNAL_SET, ACLSHMEM_SIGNAL_ADD);
  auto* word = static_cast<std::int32_t*>(signal.word);
  put<1>(call, dest, source, bytes, pe);
  // Quiet, since an atomic may overtake a put.
  if (process_state.has_links) require(call, pgas::quiet_links(process_state.routes));
  // Both are release stores at least (pgas/rma.h).
  if (signal.op == ACLSHMEM_SIGNAL_SET)
    change_atomic<AtomicKind::kSet>(call, word, signal.value, pe);
  else
    change_atomic<AtomicKind::kAdd>(call, word, signal.value, pe);
}
MEMSPAN_CATCH_AND_END(call)

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;
using memspan::CallKind;

// A put or a get is complete when it returns, or a link has taken the data over, so the _nbi forms
// are the same.
#define MEMSPAN_BOTH(definition, function, ...) \
  definition(function, __VA_ARGS__) definition(function##_nbi, __VA_ARGS__)

#define MEMSPAN_MOVE(function, operation, type)                                   \
  MEMSPAN_EXPORT void function(type* dest, type* source, size_t nelems, int pe) { \
    operation<sizeof(type)>(#function, dest, source, nelems, pe);                 \
  }
#define MEMSPAN_MOVE_SIZED(function, operation, bytes, count)                       \
  MEMSPAN_EXPORT void function(void* dst, void* src, count elem_size, int32_t pe) { \
    operation<bytes>(#function, dst, src, elem_size, pe);                           \
  }
#define MEMSPAN_PUT_SIGNAL(function, type, word, bytes)                                           \
  MEMSPAN_EXPORT void function(type* dst, type* src, size_t elem_size, word* sig_addr,            \
                               int32_t signal, int sig_op, int pe) {                              \
    put_signal(#function, dst, src, bytes_of(elem_size, bytes), Signal{sig_addr, signal, sig_op}, \
               pe);                                                                               \
  }
#define MEMSPAN_STRIDED(function, kind, type, bytes)                                           \
  MEMSPAN_EXPORT void function(type* dest, type* source, ptrdiff_t dst, ptrdiff_t sst,         \
                               size_t nelems, int pe) {                                        \
    move_strided<CallKind::kind>(#function, dest, source, Strides{dst, sst, 1, nelems}, bytes, \
                                 pe);                                                          \
  }

#define MEMSPAN_TYPED(name, type)                                                             \
  MEMSPAN_EXPORT void aclshmem_##name##_p(type* dst, const type value, int pe) {              \
    put_value("aclshmem_" #name "_p", dst, value, pe);                                        \
  }                                                                                           \
  MEMSPAN_EXPORT type aclshmem_##name##_g(type* src, int32_t pe) {                            \
    return get_value("aclshmem_" #name "_g", src, pe);                                        \
  }                                                                                           \
  MEMSPAN_BOTH(MEMSPAN_MOVE, aclshmem_##name##_put, put, type)                                \
  MEMSPAN_BOTH(MEMSPAN_MOVE, aclshmem_##name##_get, get, type)                                \
  MEMSPAN_STRIDED(aclshmem_##name##_iput, kPut, type, sizeof(type))                           \
  MEMSPAN_STRIDED(aclshmem_##name##_iget, kGet, type, sizeof(type))                           \
  MEMSPAN_BOTH(MEMSPAN_PUT_SIGNAL, aclshmem_##name##_put_signal, type, uint8_t, sizeof(type)) \
  MEMSPAN_BOTH(MEMSPAN_MOVE, shmem_put_##name##_mem, put, type)                               \
  MEMSPAN_BOTH(MEMSPAN_MOVE, shmem_get_##name##_mem, get, type)                               \
  MEMSPAN_BOTH(MEMSPAN_PUT_SIGNAL, shmem_put_##name##_mem_signal, type, uint8_t, sizeof(type))
MEMSPAN_CANN_RMA_TYPES(MEMSPAN_TYPED)

#define MEMSPAN_SIZED(bits, bytes)                                           \
  MEMSPAN_BOTH(MEMSPAN_MOVE_SIZED, aclshmem_put##bits, put, bytes, uint32_t) \
  MEMSPAN_BOTH(MEMSPAN_MOVE_SIZED, aclshmem_get##bits, get, bytes, uint32_t) \
  MEMSPAN_STRIDED(aclshmem_iput##bits, kPut, void, bytes)                    \
  MEMSPAN_STRIDED(aclshmem_iget##bits, kGet, void, bytes)                    \
  MEMSPAN_BOTH(MEMSPAN_PUT_SIGNAL, aclshmem_put##bits##_signal, void, int32_t, bytes)
MEMSPAN_CANN_SIZES(MEMSPAN_SIZED)

MEMSPAN_BOTH(MEMSPAN_PUT_SIGNAL, aclshmemx_putmem_signal, void, void, 1)
MEMSPAN_BOTH(MEMSPAN_MOVE_SIZED, aclshmem_putmem, put, 1, size_t)
MEMSPAN_BOTH(MEMSPAN_MOVE_SIZED, aclshmem_getmem, get, 1, size_t)
