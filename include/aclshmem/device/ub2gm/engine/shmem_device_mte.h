// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: the engine MTE between local and global memory.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_UB_MTE_H
#define MEMSPAN_ACLSHMEM_DEVICE_UB_MTE_H

#include "../../shmem_def.h"

template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(__gm__ T* dst, __ubuf__ T* src, std::uint32_t elem_size,
                                           int pe, std::uint32_t) {
  memspan::kernel::put(dst, src, elem_size, pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(__ubuf__ T* dst, __gm__ T* src, std::uint32_t elem_size,
                                           int pe, std::uint32_t) {
  memspan::kernel::get(dst, src, elem_size, pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(__gm__ T* dst, __ubuf__ T* src,
                                           const non_contiguous_copy_param& copy_params, int pe,
                                           std::uint32_t) {
  memspan::kernel::put_2d(dst, src, memspan::device::rows(copy_params), pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(__ubuf__ T* dst, __gm__ T* src,
                                           const non_contiguous_copy_param& copy_params, int pe,
                                           std::uint32_t) {
  memspan::kernel::get_2d(dst, src, memspan::device::rows(copy_params), pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(AscendC::GlobalTensor<T> dst,
                                           AscendC::LocalTensor<T> src, std::uint32_t elem_size,
                                           int pe, std::uint32_t) {
  memspan::kernel::put(dst.data(), src.data(), elem_size, pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(AscendC::LocalTensor<T> dst,
                                           AscendC::GlobalTensor<T> src, std::uint32_t elem_size,
                                           int pe, std::uint32_t) {
  memspan::kernel::get(dst.data(), src.data(), elem_size, pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_put_nbi(AscendC::GlobalTensor<T> dst,
                                           AscendC::LocalTensor<T> src,
                                           const non_contiguous_copy_param& copy_params, int pe,
                                           std::uint32_t) {
  memspan::kernel::put_2d(dst.data(), src.data(), memspan::device::rows(copy_params), pe);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_mte_get_nbi(AscendC::LocalTensor<T> dst,
                                           AscendC::GlobalTensor<T> src,
                                           const non_contiguous_copy_param& copy_params, int pe,
                                           std::uint32_t) {
  memspan::kernel::get_2d(dst.data(), src.data(), memspan::device::rows(copy_params), pe);
}

#endif
