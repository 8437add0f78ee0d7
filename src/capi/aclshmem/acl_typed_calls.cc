// SPDX-License-Identifier: Apache-2.0
// The calls of the CANN SHMEM API that exist for each type: put and get, put with signal, waits and
// tests, which store their results. Its signals are 32-bit words, under whatever pointer type.
#include "capi/aclshmem/export.h"
#include "capi/fast_atomic.h"
#include "capi/fast_rma.h"
#include "capi/wait_sets.h"
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

template <typename T>
void set_result(const char* call, T* result, T value) {
  require_not_null(call, "res_out", result);
  *result = value;
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

// ---- tables: the middle of a name and its C type, or bits and bytes. The installed headers have
// lists of their own, since users write their names.

// Waits and tests.
#define MEMSPAN_CANN_WAIT_TYPES(X) \
  X(float, float)                  \
  X(int8, int8_t)                  \
  X(int16, int16_t)                \
  X(int32, int32_t)                \
  X(int64, int64_t)                \
  X(uint8, uint8_t)                \
  X(uint16, uint16_t)              \
  X(uint32, uint32_t)              \
  X(uint64, uint64_t)              \
  X(char, char)

// Put and get.
#define MEMSPAN_CANN_RMA_TYPES(X) \
  X(double, double)               \
  MEMSPAN_CANN_WAIT_TYPES(X)

#define MEMSPAN_CANN_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

// ---- put and get

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

// ---- waits and tests

#define MEMSPAN_ONE(name, type)                                                                    \
  MEMSPAN_EXPORT void aclshmem_##name##_wait(type* ivar, type cmp_value) {                         \
    wait_one<type>("aclshmem_" #name "_wait", ivar, ACLSHMEM_CMP_NE, cmp_value);                   \
  }                                                                                                \
  MEMSPAN_EXPORT void aclshmem_##name##_wait_until(type* ivar, int cmp, type cmp_value) {          \
    wait_one<type>("aclshmem_" #name "_wait_until", ivar, cmp, cmp_value);                         \
  }                                                                                                \
  MEMSPAN_EXPORT void aclshmem_##name##_test(type* ivars, int cmp, type cmp_value, int* res_out) { \
    constexpr const char* kCall = "aclshmem_" #name "_test";                                       \
    set_result(kCall, res_out, test_one<type>(kCall, ivars, cmp, cmp_value));                      \
  }
MEMSPAN_CANN_WAIT_TYPES(MEMSPAN_ONE)

// `vector` is _vector or nothing, `value` the parameter after cmp, `values` the expression that
// says what to compare with.
#define MEMSPAN_WORDS(type, function, values) \
  word_set<type>(#function, ivars, nelems, status, cmp, values)
#define MEMSPAN_ON_SET(operation, type, function, value, values, result)                      \
  MEMSPAN_EXPORT void function(type* ivars, size_t nelems, const int* status, int cmp, value, \
                               result* res_out) {                                             \
    set_result(#function, res_out, operation(MEMSPAN_WORDS(type, function, values)));         \
  }
#define MEMSPAN_INDICES(operation, type, function, value, values)                              \
  MEMSPAN_EXPORT void function(type* ivars, size_t nelems, size_t* indices, const int* status, \
                               int cmp, value, size_t* res_out) {                              \
    set_result(#function, res_out, operation(MEMSPAN_WORDS(type, function, values), indices)); \
  }
#define MEMSPAN_SET(name, type, vector, value, values)                                            \
  MEMSPAN_EXPORT void aclshmem_##name##_wait_until_all##vector(                                   \
      type* ivars, size_t nelems, const int* status, int cmp, value) {                            \
    wait_all(MEMSPAN_WORDS(type, aclshmem_##name##_wait_until_all##vector, values));              \
  }                                                                                               \
  MEMSPAN_ON_SET(wait_any, type, aclshmem_##name##_wait_until_any##vector, value, values, size_t) \
  MEMSPAN_INDICES(wait_some, type, aclshmem_##name##_wait_until_some##vector, value, values)      \
  MEMSPAN_ON_SET(test_any, type, aclshmem_##name##_test_any##vector, value, values, size_t)       \
  MEMSPAN_INDICES(test_some, type, aclshmem_##name##_test_some##vector, value, values)

#define MEMSPAN_SETS(name, type)                                                                  \
  MEMSPAN_SET(name, type, , type cmp_value, SameValue<type>{cmp_value})                           \
  MEMSPAN_SET(name, type, _vector, type* cmp_values, cmp_values)                                  \
  MEMSPAN_ON_SET(test_all, type, aclshmem_##name##_test_all_vector, type* cmp_values, cmp_values, \
                 int)
MEMSPAN_CANN_WAIT_TYPES(MEMSPAN_SETS)

MEMSPAN_EXPORT void aclshmem_signal_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_val) {
  wait_one<int32_t>("aclshmem_signal_wait_until", sig_addr, cmp, cmp_val);
}
