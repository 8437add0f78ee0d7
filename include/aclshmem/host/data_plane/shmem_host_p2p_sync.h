/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM: waiting for words of this PE's symmetric memory, and looking at them, by host code.
 *
 * `cmp` is ACLSHMEM_CMP_*. An element whose `status` is not 0 is left out; NULL leaves out none.
 * Results are stored: 1 or 0 where `res_out` is an int; an index, SIZE_MAX for none, of the _any
 * forms; the number of `indices` of the _some forms. The _vector forms compare each element with a
 * value of its own. A wait for nothing (no element counts) returns at once. Thread-safe.
 */
#ifndef MEMSPAN_ACLSHMEM_HOST_P2P_SYNC_H
#define MEMSPAN_ACLSHMEM_HOST_P2P_SYNC_H

#include "../shmem_host_def.h"

MEMSPAN_ACLSHMEM_BEGIN

#ifndef MEMSPAN_DEVICE_CODE /* where those for kernels are */
ACLSHMEM_HOST_API void aclshmem_signal_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_val);
#endif
/* Later work of the stream also waits for it. */
ACLSHMEM_HOST_API void aclshmemx_signal_wait_until_on_stream(int32_t* sig_addr, int cmp,
                                                             int32_t cmp_val, aclrtStream stream);

#ifndef MEMSPAN_DEVICE_CODE /* where those for kernels are */
/* `wait` until the word is another value. */
#define MEMSPAN_WAITS(name, type)                                                                 \
  ACLSHMEM_HOST_API void aclshmem_##name##_wait(type* ivar, type cmp_value);                      \
  ACLSHMEM_HOST_API void aclshmem_##name##_wait_until(type* ivar, int cmp, type cmp_value);       \
  ACLSHMEM_HOST_API void aclshmem_##name##_wait_until_all(                                        \
      type* ivars, size_t nelems, const int* status, int cmp, type cmp_value);                    \
  ACLSHMEM_HOST_API void aclshmem_##name##_wait_until_any(                                        \
      type* ivars, size_t nelems, const int* status, int cmp, type cmp_value, size_t* res_out);   \
  ACLSHMEM_HOST_API void aclshmem_##name##_wait_until_some(                                       \
      type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type cmp_value,    \
      size_t* res_out);                                                                           \
  ACLSHMEM_HOST_API void aclshmem_##name##_wait_until_all_vector(                                 \
      type* ivars, size_t nelems, const int* status, int cmp, type* cmp_values);                  \
  ACLSHMEM_HOST_API void aclshmem_##name##_wait_until_any_vector(                                 \
      type* ivars, size_t nelems, const int* status, int cmp, type* cmp_values, size_t* res_out); \
  ACLSHMEM_HOST_API void aclshmem_##name##_wait_until_some_vector(                                \
      type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type* cmp_values,  \
      size_t* res_out)
ACLSHMEM_P2P_SYNC_TYPE_FUNC(MEMSPAN_WAITS);
#undef MEMSPAN_WAITS

#define MEMSPAN_TESTS(name, type)                                                                  \
  ACLSHMEM_HOST_API void aclshmem_##name##_test(type* ivars, int cmp, type cmp_value,              \
                                                int* res_out);                                     \
  ACLSHMEM_HOST_API void aclshmem_##name##_test_any(type* ivars, size_t nelems, const int* status, \
                                                    int cmp, type cmp_value, size_t* res_out);     \
  ACLSHMEM_HOST_API void aclshmem_##name##_test_some(type* ivars, size_t nelems, size_t* indices,  \
                                                     const int* status, int cmp, type cmp_value,   \
                                                     size_t* res_out);                             \
  ACLSHMEM_HOST_API void aclshmem_##name##_test_all_vector(                                        \
      type* ivars, size_t nelems, const int* status, int cmp, type* cmp_values, int* res_out);     \
  ACLSHMEM_HOST_API void aclshmem_##name##_test_any_vector(                                        \
      type* ivars, size_t nelems, const int* status, int cmp, type* cmp_values, size_t* res_out);  \
  ACLSHMEM_HOST_API void aclshmem_##name##_test_some_vector(                                       \
      type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type* cmp_values,   \
      size_t* res_out)
ACLSHMEM_P2P_SYNC_TYPE_FUNC(MEMSPAN_TESTS);
#undef MEMSPAN_TESTS
#endif

MEMSPAN_ACLSHMEM_END

#endif
