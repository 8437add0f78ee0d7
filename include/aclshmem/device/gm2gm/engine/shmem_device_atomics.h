// SPDX-License-Identifier: Apache-2.0
// The atomics of an engine: the same for all of them.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_ENGINE_ATOMICS_H
#define MEMSPAN_ACLSHMEM_DEVICE_ENGINE_ATOMICS_H

#include "../../shmem_def.h"

#define MEMSPAN_DEVICE_ENGINE_ATOMICS(engine)                                                     \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE void aclshmemx_##engine##_atomic_add(__gm__ T* dst, T value, std::int32_t pe) { \
    memspan::kernel::atomic_add(dst, value, pe);                                                  \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE void aclshmemx_##engine##_atomic_inc(__gm__ T* dst, std::int32_t pe) {          \
    memspan::kernel::atomic_inc(dst, pe);                                                         \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE void aclshmemx_##engine##_atomic_set(__gm__ T* dst, T value, std::int32_t pe) { \
    memspan::kernel::atomic_set(dst, value, pe);                                                  \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE T aclshmemx_##engine##_atomic_swap(__gm__ T* dst, T value, std::int32_t pe) {   \
    return memspan::kernel::atomic_swap(dst, value, pe);                                          \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE T aclshmemx_##engine##_atomic_compare_swap(__gm__ T* dst, T cond, T value,      \
                                                             std::int32_t pe) {                   \
    return memspan::kernel::atomic_compare_swap(dst, cond, value, pe);                            \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE T aclshmemx_##engine##_atomic_fetch(__gm__ T* src, std::int32_t pe) {           \
    return memspan::kernel::atomic_fetch(src, pe);                                                \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE T aclshmemx_##engine##_atomic_fetch_inc(__gm__ T* dst, std::int32_t pe) {       \
    return memspan::kernel::atomic_fetch_inc(dst, pe);                                            \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE T aclshmemx_##engine##_atomic_fetch_add(__gm__ T* dst, T value,                 \
                                                          std::int32_t pe) {                      \
    return memspan::kernel::atomic_fetch_add(dst, value, pe);                                     \
  }
#define MEMSPAN_DEVICE_ENGINE_BITS(engine, op)                                                     \
  template <typename T>                                                                            \
  ACLSHMEM_DEVICE void aclshmemx_##engine##_atomic_##op(__gm__ T* dst, T value, std::int32_t pe) { \
    memspan::kernel::atomic_##op(dst, value, pe);                                                  \
  }                                                                                                \
  template <typename T>                                                                            \
  ACLSHMEM_DEVICE T aclshmemx_##engine##_atomic_fetch_##op(__gm__ T* dst, T value,                 \
                                                           std::int32_t pe) {                      \
    return memspan::kernel::atomic_fetch_##op(dst, value, pe);                                     \
  }

#endif
