// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: signals, waits and tests, which return their results. Words are of this
// PE; those count whose status is 0; status may be null.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_P2P_SYNC_H
#define MEMSPAN_ACLSHMEM_DEVICE_P2P_SYNC_H

#include "../shmem_def.h"

ACLSHMEM_DEVICE void aclshmemx_signal_op(__gm__ std::int32_t* sig_addr, std::int32_t signal,
                                         int sig_op, int pe) {
  memspan::kernel::signal_op(sig_addr, signal, memspan::device::signal_op(sig_op), pe);
}
// The value that ended the wait.
ACLSHMEM_DEVICE std::int32_t aclshmem_signal_wait_until(__gm__ std::int32_t* sig_addr, int cmp,
                                                        std::int32_t cmp_val) {
  return memspan::kernel::signal_wait_until(sig_addr, memspan::device::compare(cmp), cmp_val);
}

// `with` is the parameter after cmp, and `given` its name.
#define MEMSPAN_DEVICE_SET(name, type, vector, with, given)                                        \
  ACLSHMEM_DEVICE void aclshmem_##name##_wait_until_all##vector(                                   \
      __gm__ type* ivars, std::size_t nelems, __gm__ const int* status, int cmp, with) {           \
    memspan::kernel::wait_until_all(ivars, nelems, status, memspan::device::compare(cmp), given);  \
  }                                                                                                \
  ACLSHMEM_DEVICE std::size_t aclshmem_##name##_wait_until_any##vector(                            \
      __gm__ type* ivars, std::size_t nelems, __gm__ const int* status, int cmp, with) {           \
    return memspan::kernel::wait_until_any(ivars, nelems, status, memspan::device::compare(cmp),   \
                                           given);                                                 \
  }                                                                                                \
  ACLSHMEM_DEVICE std::size_t aclshmem_##name##_wait_until_some##vector(                           \
      __gm__ type* ivars, std::size_t nelems, __gm__ std::size_t* indices,                         \
      __gm__ const int* status, int cmp, with) {                                                   \
    return memspan::kernel::wait_until_some(ivars, nelems, indices, status,                        \
                                            memspan::device::compare(cmp), given);                 \
  }                                                                                                \
  ACLSHMEM_DEVICE std::size_t aclshmem_##name##_test_any##vector(                                  \
      __gm__ type* ivars, std::size_t nelems, __gm__ const int* status, int cmp, with) {           \
    return memspan::kernel::test_any(ivars, nelems, status, memspan::device::compare(cmp), given); \
  }                                                                                                \
  ACLSHMEM_DEVICE std::size_t aclshmem_##name##_test_some##vector(                                 \
      __gm__ type* ivars, std::size_t nelems, __gm__ std::size_t* indices,                         \
      __gm__ const int* status, int cmp, with) {                                                   \
    return memspan::kernel::test_some(ivars, nelems, indices, status,                              \
                                      memspan::device::compare(cmp), given);                       \
  }
#define MEMSPAN_DEVICE_WORD(name, type)                                                           \
  ACLSHMEM_DEVICE void aclshmem_##name##_wait(__gm__ type* ivar, type cmp_value) {                \
    memspan::kernel::wait_until(ivar, memspan::kernel::Compare::kNotEqual, cmp_value);            \
  }                                                                                               \
  ACLSHMEM_DEVICE void aclshmem_##name##_wait_until(__gm__ type* ivar, int cmp, type cmp_value) { \
    memspan::kernel::wait_until(ivar, memspan::device::compare(cmp), cmp_value);                  \
  }                                                                                               \
  ACLSHMEM_DEVICE int aclshmem_##name##_test(__gm__ type* ivars, int cmp, type cmp_value) {       \
    return memspan::kernel::test(ivars, memspan::device::compare(cmp), cmp_value) ? 1 : 0;        \
  }                                                                                               \
  ACLSHMEM_DEVICE int aclshmem_##name##_test_all_vector(__gm__ type* ivars, std::size_t nelems,   \
                                                        __gm__ const int* status, int cmp,        \
                                                        __gm__ type* cmp_values) {                \
    return memspan::kernel::test_all(ivars, nelems, status, memspan::device::compare(cmp),        \
                                     cmp_values)                                                  \
               ? 1                                                                                \
               : 0;                                                                               \
  }                                                                                               \
  MEMSPAN_DEVICE_SET(name, type, , type cmp_value, cmp_value)                                     \
  MEMSPAN_DEVICE_SET(name, type, _vector, __gm__ type* cmp_values, cmp_values)
MEMSPAN_DEVICE_WAIT_TYPES(MEMSPAN_DEVICE_WORD)

#undef MEMSPAN_DEVICE_SET
#undef MEMSPAN_DEVICE_WORD

#endif
