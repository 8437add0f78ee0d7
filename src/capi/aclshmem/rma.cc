// SPDX-License-Identifier: Apache-2.0
// Typed put and get of the CANN SHMEM API, and put with signal. Its signals are 32-bit words,
// under whatever pointer type.
#include "capi/rma.h"

#include "capi/aclshmem/export.h"
#include "capi/aclshmem/types.def"
#include "capi/atomic.h"
#include "pgas/order.h"

namespace memspan::capi {
namespace {

struct Signal {
  void* word;
  std::int32_t value;
  int op;
};

// The data, then the signal.
void put_signal(const char* call, void* dest, const void* source, std::size_t bytes,
                const Signal& signal, int pe) {
  if (signal.op != SHMEM_SIGNAL_SET && signal.op != SHMEM_SIGNAL_ADD)
    end_for_bad_number(call, "sig_op", signal.op, SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD);
  auto* word = static_cast<std::int32_t*>(signal.word);
  put<1>(call, dest, source, bytes, pe);
  // Quiet, since an atomic may overtake a put.
  if (process_state.has_links) require(call, pgas::quiet_links(process_state.routes));
  // Both are release stores at least (pgas/atomic.h).
  if (signal.op == SHMEM_SIGNAL_SET)
    change_atomic<AtomicKind::kSet>(call, word, signal.value, pe);
  else
    change_atomic<AtomicKind::kAdd>(call, word, signal.value, pe);
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

#define MEMSPAN_MOVE(operation, function, type)                                   \
  MEMSPAN_EXPORT void function(type* dest, type* source, size_t nelems, int pe) { \
    operation<sizeof(type)>(#function, dest, source, nelems, pe);                 \
  }
#define MEMSPAN_PUT_SIGNAL(function, type)                                                \
  MEMSPAN_EXPORT void function(type* dst, type* src, size_t elem_size, uint8_t* sig_addr, \
                               int32_t signal, int sig_op, int pe) {                      \
    put_signal(#function, dst, src, bytes_of(elem_size, sizeof(type)),                    \
               Signal{sig_addr, signal, sig_op}, pe);                                     \
  }
#define MEMSPAN_TYPED(name, type)                                                \
  MEMSPAN_EXPORT void aclshmem_##name##_p(type* dst, const type value, int pe) { \
    put_value("shmem_" #name "_p", dst, value, pe);                              \
  }                                                                              \
  MEMSPAN_EXPORT type aclshmem_##name##_g(type* src, int32_t pe) {               \
    return get_value("shmem_" #name "_g", src, pe);                              \
  }                                                                              \
  MEMSPAN_MOVE(put, shmem_put_##name##_mem, type)                                \
  MEMSPAN_MOVE(put, shmem_put_##name##_mem_nbi, type)                            \
  MEMSPAN_MOVE(get, shmem_get_##name##_mem, type)                                \
  MEMSPAN_MOVE(get, shmem_get_##name##_mem_nbi, type)                            \
  MEMSPAN_PUT_SIGNAL(shmem_put_##name##_mem_signal, type)                        \
  MEMSPAN_PUT_SIGNAL(shmem_put_##name##_mem_signal_nbi, type)
MEMSPAN_EARLY_RMA_TYPES(MEMSPAN_TYPED)

MEMSPAN_EXPORT void aclshmem_putmem_signal(void* dst, void* src, size_t elem_size, void* sig_addr,
                                           int32_t signal, int sig_op, int pe) {
  put_signal("shmem_putmem_signal", dst, src, elem_size, Signal{sig_addr, signal, sig_op}, pe);
}
MEMSPAN_EXPORT void aclshmem_putmem_signal_nbi(void* dst, void* src, size_t elem_size,
                                               void* sig_addr, int32_t signal, int sig_op, int pe) {
  put_signal("shmem_putmem_signal_nbi", dst, src, elem_size, Signal{sig_addr, signal, sig_op}, pe);
}

// The on-chip buffer of an engine that this machine does not have: nothing to set.
MEMSPAN_EXPORT int shmem_mte_set_ub_params([[maybe_unused]] uint64_t offset,
                                           [[maybe_unused]] uint32_t ub_size,
                                           [[maybe_unused]] uint32_t event_id) {
  return 0;
}
MEMSPAN_EXPORT uint64_t shmemx_get_ffts_config(void) {
  return 0;
}
