// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: atomics. Operations that return a value complete at return; the others
// by quiet.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_AMO_H
#define MEMSPAN_ACLSHMEM_DEVICE_AMO_H

#include "../shmem_def.h"

#define MEMSPAN_DEVICE_ADD(name, type)                                            \
  ACLSHMEM_DEVICE void aclshmem_##name##_atomic_add(__gm__ type* dst, type value, \
                                                    std::int32_t pe) {            \
    memspan::kernel::atomic_add(dst, value, pe);                                  \
  }
MEMSPAN_DEVICE_ADD(int8, std::int8_t)
MEMSPAN_DEVICE_ADD(int16, std::int16_t)
MEMSPAN_DEVICE_ADD(half, half)
MEMSPAN_DEVICE_ADD(bfloat16, bfloat16_t)
MEMSPAN_DEVICE_ADD(float, float)
MEMSPAN_DEVICE_INTEGERS_4_8(MEMSPAN_DEVICE_ADD)

#define MEMSPAN_DEVICE_SET(name, type)                                              \
  ACLSHMEM_DEVICE void aclshmem_##name##_atomic_set(__gm__ type* dest, type value,  \
                                                    std::int32_t pe) {              \
    memspan::kernel::atomic_set(dest, value, pe);                                   \
  }                                                                                 \
  ACLSHMEM_DEVICE type aclshmem_##name##_atomic_swap(__gm__ type* dest, type value, \
                                                     std::int32_t pe) {             \
    return memspan::kernel::atomic_swap(dest, value, pe);                           \
  }
MEMSPAN_DEVICE_SET(float, float)
MEMSPAN_DEVICE_INTEGERS_4_8(MEMSPAN_DEVICE_SET)

#define MEMSPAN_DEVICE_BITS(name, type, op)                                               \
  ACLSHMEM_DEVICE void aclshmem_##name##_atomic_##op(__gm__ type* dest, type value,       \
                                                     std::int32_t pe) {                   \
    memspan::kernel::atomic_##op(dest, value, pe);                                        \
  }                                                                                       \
  ACLSHMEM_DEVICE type aclshmem_##name##_atomic_fetch_##op(__gm__ type* dest, type value, \
                                                           std::int32_t pe) {             \
    return memspan::kernel::atomic_fetch_##op(dest, value, pe);                           \
  }
#define MEMSPAN_DEVICE_INTEGER(name, type)                                                      \
  ACLSHMEM_DEVICE void aclshmem_##name##_atomic_inc(__gm__ type* dst, std::int32_t pe) {        \
    memspan::kernel::atomic_inc(dst, pe);                                                       \
  }                                                                                             \
  ACLSHMEM_DEVICE type aclshmem_##name##_atomic_fetch(__gm__ const type* source,                \
                                                      std::int32_t pe) {                        \
    return memspan::kernel::atomic_fetch(source, pe);                                           \
  }                                                                                             \
  ACLSHMEM_DEVICE type aclshmem_##name##_atomic_fetch_inc(__gm__ type* dest, std::int32_t pe) { \
    return memspan::kernel::atomic_fetch_inc(dest, pe);                                         \
  }                                                                                             \
  ACLSHMEM_DEVICE type aclshmem_##name##_atomic_fetch_add(__gm__ type* dest, type value,        \
                                                          std::int32_t pe) {                    \
    return memspan::kernel::atomic_fetch_add(dest, value, pe);                                  \
  }                                                                                             \
  ACLSHMEM_DEVICE type aclshmem_##name##_atomic_compare_swap(__gm__ type* dest, type cond,      \
                                                             type value, std::int32_t pe) {     \
    return memspan::kernel::atomic_compare_swap(dest, cond, value, pe);                         \
  }                                                                                             \
  MEMSPAN_DEVICE_BITS(name, type, and)                                                          \
  MEMSPAN_DEVICE_BITS(name, type, or)                                                           \
  MEMSPAN_DEVICE_BITS(name, type, xor)
MEMSPAN_DEVICE_INTEGERS_4_8(MEMSPAN_DEVICE_INTEGER)

#undef MEMSPAN_DEVICE_ADD
#undef MEMSPAN_DEVICE_SET
#undef MEMSPAN_DEVICE_BITS
#undef MEMSPAN_DEVICE_INTEGER

#endif
