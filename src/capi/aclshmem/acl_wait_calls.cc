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
#define MEMSPAN_SET(name, type, vector, value, values)                                           \
  MEMSPAN_EXPORT void aclshmem_##name##_wait_until_all##vector(                                  \
      type* ivars, size_t nelems, const int* status, int cmp, value) {                           \
    constexpr const char* kCall = "aclshmem_" #name "_wait_until_all" #vector;                   \
    wait_all(kCall, word_set<type>(kCall, ivars, nelems, status, cmp, values));                  \
  }                                                                                              \
  MEMSPAN_EXPORT void aclshmem_##name##_wait_until_any##vector(                                  \
      type* ivars, size_t nelems, const int* status, int cmp, value, size_t* res_out) {          \
    constexpr const char* kCall = "aclshmem_" #name "_wait_until_any" #vector;                   \
    store(kCall, res_out,                                                                        \
          wait_any(kCall, word_set<type>(kCall, ivars, nelems, status, cmp, values)));           \
  }                                                                                              \
  MEMSPAN_EXPORT void aclshmem_##name##_wait_until_some##vector(                                 \
      type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, value,            \
      size_t* res_out) {                                                                         \
    constexpr const char* kCall = "aclshmem_" #name "_wait_until_some" #vector;                  \
    store(kCall, res_out,                                                                        \
          wait_some(kCall, word_set<type>(kCall, ivars, nelems, status, cmp, values), indices)); \
  }                                                                                              \
  MEMSPAN_EXPORT void aclshmem_##name##_test_any##vector(                                        \
      type* ivars, size_t nelems, const int* status, int cmp, value, size_t* res_out) {          \
    constexpr const char* kCall = "aclshmem_" #name "_test_any" #vector;                         \
    store(kCall, res_out, test_set(ivars, [&] {                                                  \
            return word_set<type>(kCall, ivars, nelems, status, cmp, values)                     \
                .find_from(some_start(nelems));                                                  \
          }));                                                                                   \
  }                                                                                              \
  MEMSPAN_EXPORT void aclshmem_##name##_test_some##vector(type* ivars, size_t nelems,            \
                                                          size_t* indices, const int* status,    \
                                                          int cmp, value, size_t* res_out) {     \
    constexpr const char* kCall = "aclshmem_" #name "_test_some" #vector;                        \
    store(kCall, res_out, test_set(ivars, [&] {                                                  \
            return word_set<type>(kCall, ivars, nelems, status, cmp, values).collect(indices);   \
          }));                                                                                   \
  }

#define MEMSPAN_SETS(name, type)                                                                \
  MEMSPAN_SET(name, type, , type cmp_value, SameValue<type>{cmp_value})                         \
  MEMSPAN_SET(name, type, _vector, type* cmp_values, cmp_values)                                \
  MEMSPAN_EXPORT void aclshmem_##name##_test_all_vector(                                        \
      type* ivars, size_t nelems, const int* status, int cmp, type* cmp_values, int* res_out) { \
    constexpr const char* kCall = "aclshmem_" #name "_test_all_vector";                         \
    const auto set = word_set<type>(kCall, ivars, nelems, status, cmp, cmp_values);             \
    store(kCall, res_out, test_set(ivars, [&] { return set.holds_for_all() ? 1 : 0; }));        \
  }
MEMSPAN_CANN_WAIT_TYPES(MEMSPAN_SETS)

MEMSPAN_EXPORT void aclshmem_signal_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_val) {
  wait_one<int32_t>("aclshmem_signal_wait_until", sig_addr, cmp, cmp_val);
}
