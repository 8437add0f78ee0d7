// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: the names of the engine MTE. Scratch (`buf`, `ub_size`) and events
// (`sync_id`) are accepted and not used. <device/ub2gm/engine/shmem_device_mte.h> has the forms
// with local tensors.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_MTE_H
#define MEMSPAN_ACLSHMEM_DEVICE_MTE_H

#include "../../shmem_def.h"

ACLSHMEM_DEVICE void aclshmemx_set_mte_config(std::uint64_t, std::uint32_t, std::uint32_t) {}
ACLSHMEM_DEVICE void aclshmemx_mte_quiet() {
  memspan::kernel::quiet();
}

#define MEMSPAN_DEVICE_ENGINE_MOVE(direction)                                                     \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE void aclshmemx_mte_##direction##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T*, \
                                                       std::uint32_t, std::uint32_t elem_size,    \
                                                       int pe, std::uint32_t) {                   \
    memspan::kernel::direction(dst, src, elem_size, pe);                                          \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE void aclshmemx_mte_##direction##_nbi(                                           \
      __gm__ T* dst, __gm__ T* src, __ubuf__ T*, std::uint32_t,                                   \
      const non_contiguous_copy_param& copy_params, int pe, std::uint32_t) {                      \
    memspan::kernel::direction##_2d(dst, src, memspan::device::rows(copy_params), pe);            \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE void aclshmemx_mte_##direction##_nbi(                                           \
      AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T>,        \
      std::uint32_t elem_size, int pe, std::uint32_t) {                                           \
    memspan::kernel::direction(dst.data(), src.data(), elem_size, pe);                            \
  }                                                                                               \
  template <typename T>                                                                           \
  ACLSHMEM_DEVICE void aclshmemx_mte_##direction##_nbi(                                           \
      AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T>,        \
      const non_contiguous_copy_param& copy_params, int pe, std::uint32_t) {                      \
    memspan::kernel::direction##_2d(dst.data(), src.data(), memspan::device::rows(copy_params),   \
                                    pe);                                                          \
  }
MEMSPAN_DEVICE_ENGINE_MOVE(put)
MEMSPAN_DEVICE_ENGINE_MOVE(get)
#undef MEMSPAN_DEVICE_ENGINE_MOVE

#include "shmem_device_atomics.h"
MEMSPAN_DEVICE_ENGINE_ATOMICS(mte)

#endif
