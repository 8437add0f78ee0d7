// SPDX-License-Identifier: Apache-2.0
// Waits and tests of the CANN SHMEM API, which stores its results.
#include "capi/wait_sets.h"

#include "capi/aclshmem/export.h"
#include "capi/aclshmem/types.def"

namespace memspan::capi {
namespace {

template <typename T>
void store(const char* call, T* result, T value) {
  require_not_null(call, "res_out", result);
  *result = value;
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

#define MEMSPAN_ONE(name, type)                                                                    \
  MEMSPAN_EXPORT void aclshmem_##name##_wait(type* ivar, type cmp_value) {                         \
    wait_one<type>("aclshmem_" #name "_wait", ivar, ACLSHMEM_CMP_NE, cmp_value);                   \
  }                                                                                                \
  MEMSPAN_EXPORT void aclshmem_##name##_wait_until(type* ivar, int cmp, type cmp_value) {          \
    wait_one<type>("aclshmem_" #name "_wait_until", ivar, cmp, cmp_value);                         \
  }                                                                                                \
  MEMSPAN_EXPORT void aclshmem_##name##_test(type* ivars, int cmp, type cmp_value, int* res_out) { \
    constexpr const char* kCall = "aclshmem_" #name "_test";                                       \
    store(kCall, res_out, test_one<type>(kCall, ivars, cmp, cmp_value));                           \
  }
MEMSPAN_CANN_WAIT_TYPES(MEMSPAN_ONE)

// `vector` is _vector or nothing, `value` the parameter after cmp, `values` the expression that
// says what to compare with.
#define MEMSPAN_WORDS(type, function, values) \
  word_set<type>(#function, ivars, nelems, status, cmp, values)
#define MEMSPAN_ON_SET(operation, type, function, value, values, result)                      \
  MEMSPAN_EXPORT void function(type* ivars, size_t nelems, const int* status, int cmp, value, \
                               result* res_out) {                                             \
    store(#function, res_out, operation(MEMSPAN_WORDS(type, function, values)));              \
  }
#define MEMSPAN_INDICES(operation, type, function, value, values)                              \
  MEMSPAN_EXPORT void function(type* ivars, size_t nelems, size_t* indices, const int* status, \
                               int cmp, value, size_t* res_out) {                              \
    store(#function, res_out, operation(MEMSPAN_WORDS(type, function, values), indices));      \
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
