// SPDX-License-Identifier: Apache-2.0
// Waiting for symmetric words of this PE, and looking at them.
#include "capi/openshmem/profiling_alias.h"
#include "capi/wait_sets.h"

using namespace memspan::capi;

#define MEMSPAN_WAIT_ONE(name, type)                                                  \
  MEMSPAN_PROFILED(void, name##_wait_until, (type * ivar, int cmp, type cmp_value)) { \
    wait_one<type>("shmem_" #name "_wait_until", ivar, cmp, cmp_value);               \
  }                                                                                   \
  MEMSPAN_PROFILED(int, name##_test, (type * ivar, int cmp, type cmp_value)) {        \
    return test_one<type>("shmem_" #name "_test", ivar, cmp, cmp_value);              \
  }
MEMSPAN_WAIT_TYPES(MEMSPAN_WAIT_ONE)

#define MEMSPAN_WAIT(name, type)                                           \
  MEMSPAN_PROFILED(void, name##_wait, (type * ivar, type cmp_value)) {     \
    wait_one<type>("shmem_" #name "_wait", ivar, SHMEM_CMP_NE, cmp_value); \
  }
MEMSPAN_DEPRECATED_WAIT_TYPES(MEMSPAN_WAIT)
MEMSPAN_PROFILED(void, wait, (long* ivar, long cmp_value)) {
  wait_one<long>("shmem_wait", ivar, SHMEM_CMP_NE, cmp_value);
}
MEMSPAN_PROFILED(void, wait_until, (long* ivar, int cmp, long cmp_value)) {
  wait_one<long>("shmem_wait_until", ivar, cmp, cmp_value);
}

// The six set functions: `vector` is _vector or nothing, `value` the last parameter, `values` the
// expression that says what to compare with.
#define MEMSPAN_WORDS(type, function, values) \
  word_set<type>("shmem_" #function, ivars, nelems, status, cmp, values)
#define MEMSPAN_ON_SET(result, operation, type, function, value, values)               \
  MEMSPAN_PROFILED(result, function,                                                   \
                   (type * ivars, size_t nelems, const int* status, int cmp, value)) { \
    return operation(MEMSPAN_WORDS(type, function, values));                           \
  }
#define MEMSPAN_INDICES(operation, type, function, value, values)                           \
  MEMSPAN_PROFILED(                                                                         \
      size_t, function,                                                                     \
      (type * ivars, size_t nelems, size_t * indices, const int* status, int cmp, value)) { \
    return operation(MEMSPAN_WORDS(type, function, values), indices);                       \
  }
#define MEMSPAN_WAIT_SET(name, type, vector, value, values)                            \
  MEMSPAN_ON_SET(void, wait_all, type, name##_wait_until_all##vector, value, values)   \
  MEMSPAN_ON_SET(size_t, wait_any, type, name##_wait_until_any##vector, value, values) \
  MEMSPAN_INDICES(wait_some, type, name##_wait_until_some##vector, value, values)      \
  MEMSPAN_ON_SET(int, test_all, type, name##_test_all##vector, value, values)          \
  MEMSPAN_ON_SET(size_t, test_any, type, name##_test_any##vector, value, values)       \
  MEMSPAN_INDICES(test_some, type, name##_test_some##vector, value, values)

#define MEMSPAN_WAIT_SETS(name, type)                                        \
  MEMSPAN_WAIT_SET(name, type, , type cmp_value, SameValue<type>{cmp_value}) \
  MEMSPAN_WAIT_SET(name, type, _vector, const type* cmp_values, cmp_values)
MEMSPAN_WAIT_TYPES(MEMSPAN_WAIT_SETS)

MEMSPAN_PROFILED(uint64_t, signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value)) {
  constexpr const char* kCall = "shmem_signal_wait_until";
  const bool is_device = is_device_word(kCall, "sig_addr", sig_addr);
  Compare compare = checked_compare(kCall, cmp);
  if (is_device) [[unlikely]]
    return wait_on_device(kCall, sig_addr, compare, cmp_value);
  // The value that made it true, not one that came later.
  std::uint64_t seen = 0;
  wait_until(kCall, [&] {
    seen = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
    return holds(&seen, compare, cmp_value);
  });
  return seen;
}
