// SPDX-License-Identifier: Apache-2.0
// Put and get of the CANN SHMEM API, and put with signal. Its signals are 32-bit words,
// under whatever pointer type.
#include "capi/fast_rma.h"

#include "capi/aclshmem/export.h"
#include "capi/aclshmem/types.def"
#include "capi/fast_atomic.h"
#include "capi/strided.h"
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

#define MEMSPAN_MOVE(operation, function, type)                                   \
  MEMSPAN_EXPORT void function(type* dest, type* source, size_t nelems, int pe) { \
    operation<sizeof(type)>(#function, dest, source, nelems, pe);                 \
  }
#define MEMSPAN_PUT_SIGNAL(function, type, word, bytes)                                           \
  MEMSPAN_EXPORT void function(type* dst, type* src, size_t elem_size, word* sig_addr,            \
                               int32_t signal, int sig_op, int pe) {                              \
    put_signal(#function, dst, src, bytes_of(elem_size, bytes), Signal{sig_addr, signal, sig_op}, \
               pe);                                                                               \
  }
#define MEMSPAN_STRIDED(operation, function, type, bytes)                              \
  MEMSPAN_EXPORT void function(type* dest, type* source, ptrdiff_t dst, ptrdiff_t sst, \
                               size_t nelems, int pe) {                                \
    operation(#function, dest, source, Strides{dst, sst, 1, nelems}, bytes, pe);       \
  }

#define MEMSPAN_TYPED(name, type)                                                   \
  MEMSPAN_EXPORT void aclshmem_##name##_p(type* dst, const type value, int pe) {    \
    put_value("aclshmem_" #name "_p", dst, value, pe);                              \
  }                                                                                 \
  MEMSPAN_EXPORT type aclshmem_##name##_g(type* src, int32_t pe) {                  \
    return get_value("aclshmem_" #name "_g", src, pe);                              \
  }                                                                                 \
  MEMSPAN_MOVE(put, aclshmem_##name##_put, type)                                    \
  MEMSPAN_MOVE(put, aclshmem_##name##_put_nbi, type)                                \
  MEMSPAN_MOVE(get, aclshmem_##name##_get, type)                                    \
  MEMSPAN_MOVE(get, aclshmem_##name##_get_nbi, type)                                \
  MEMSPAN_STRIDED(put_strided, aclshmem_##name##_iput, type, sizeof(type))          \
  MEMSPAN_STRIDED(get_strided, aclshmem_##name##_iget, type, sizeof(type))          \
  MEMSPAN_PUT_SIGNAL(aclshmem_##name##_put_signal, type, uint8_t, sizeof(type))     \
  MEMSPAN_PUT_SIGNAL(aclshmem_##name##_put_signal_nbi, type, uint8_t, sizeof(type)) \
  MEMSPAN_MOVE(put, shmem_put_##name##_mem, type)                                   \
  MEMSPAN_MOVE(put, shmem_put_##name##_mem_nbi, type)                               \
  MEMSPAN_MOVE(get, shmem_get_##name##_mem, type)                                   \
  MEMSPAN_MOVE(get, shmem_get_##name##_mem_nbi, type)                               \
  MEMSPAN_PUT_SIGNAL(shmem_put_##name##_mem_signal, type, uint8_t, sizeof(type))    \
  MEMSPAN_PUT_SIGNAL(shmem_put_##name##_mem_signal_nbi, type, uint8_t, sizeof(type))
MEMSPAN_CANN_RMA_TYPES(MEMSPAN_TYPED)

#define MEMSPAN_MOVE_SIZED(operation, function, bytes)                                 \
  MEMSPAN_EXPORT void function(void* dst, void* src, uint32_t elem_size, int32_t pe) { \
    operation<bytes>(#function, dst, src, elem_size, pe);                              \
  }
#define MEMSPAN_SIZED(bits, bytes)                                      \
  MEMSPAN_MOVE_SIZED(put, aclshmem_put##bits, bytes)                    \
  MEMSPAN_MOVE_SIZED(put, aclshmem_put##bits##_nbi, bytes)              \
  MEMSPAN_MOVE_SIZED(get, aclshmem_get##bits, bytes)                    \
  MEMSPAN_MOVE_SIZED(get, aclshmem_get##bits##_nbi, bytes)              \
  MEMSPAN_STRIDED(put_strided, aclshmem_iput##bits, void, bytes)        \
  MEMSPAN_STRIDED(get_strided, aclshmem_iget##bits, void, bytes)        \
  MEMSPAN_PUT_SIGNAL(aclshmem_put##bits##_signal, void, int32_t, bytes) \
  MEMSPAN_PUT_SIGNAL(aclshmem_put##bits##_signal_nbi, void, int32_t, bytes)
MEMSPAN_CANN_SIZES(MEMSPAN_SIZED)

MEMSPAN_PUT_SIGNAL(aclshmemx_putmem_signal, void, void, 1)
MEMSPAN_PUT_SIGNAL(aclshmemx_putmem_signal_nbi, void, void, 1)

#define MEMSPAN_MOVE_BYTES(operation, function)                                      \
  MEMSPAN_EXPORT void function(void* dst, void* src, size_t elem_size, int32_t pe) { \
    operation<1>(#function, dst, src, elem_size, pe);                                \
  }
MEMSPAN_MOVE_BYTES(put, aclshmem_putmem)
MEMSPAN_MOVE_BYTES(put, aclshmem_putmem_nbi)
MEMSPAN_MOVE_BYTES(get, aclshmem_getmem)
MEMSPAN_MOVE_BYTES(get, aclshmem_getmem_nbi)
