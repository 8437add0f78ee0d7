// SPDX-License-Identifier: Apache-2.0
// Share Memory in kernels: copies between a block's buffer ("ub") and memory that all see ("gm").
// Complete at return on the host device. A part of the space is reached where
// smem_shm_topology_can_reach() says SMEMS_DATA_OP_MTE. A null gm address ends the process.
#ifndef MEMSPAN_SMEM_SHM_AICORE_BASE_COPY_H
#define MEMSPAN_SMEM_SHM_AICORE_BASE_COPY_H

#include <cstdint>
#include <cstring>

#include "../../aclshmem/device/ascendc_pipe.h"
#include "smem_shm_aicore_base_define.h"

namespace memspan::device {

inline void need_global_memory(const char* call, const void* address) {
  if (address == nullptr) end_kernel(call, "the global memory's address is null");
}

}  // namespace memspan::device

// `size` is in bytes in all of them.
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_ub2gm(__gm__ T* dstGva, __ubuf__ T* srcUb,
                                                std::uint32_t size, bool enableL2 = true) {
  static_cast<void>(enableL2);
  memspan::device::need_global_memory("smem_shm_copy_ub2gm", dstGva);
  std::memcpy(dstGva, srcUb, size);
}
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_ub2gm(const AscendC::GlobalTensor<T>& dstGva,
                                                const AscendC::LocalTensor<T>& srcUb,
                                                std::uint32_t size) {
  smem_shm_copy_ub2gm(dstGva.data(), srcUb.data(), size);
}
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_ub2gm(__gm__ T* dstGva, __ubuf__ T* srcUb,
                                                const AscendC::DataCopyExtParams& copyParams) {
  memspan::device::need_global_memory("smem_shm_copy_ub2gm", dstGva);
  memspan::device::copy_rows_from_ub(dstGva, srcUb, copyParams);
}
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_ub2gm(const AscendC::GlobalTensor<T>& dstGva,
                                                const AscendC::LocalTensor<T>& srcUb,
                                                const AscendC::DataCopyExtParams& copyParams) {
  smem_shm_copy_ub2gm(dstGva.data(), srcUb.data(), copyParams);
}

template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_gm2ub(__ubuf__ T* dstUb, __gm__ T* srcGva,
                                                std::uint32_t size, bool enableL2 = true) {
  static_cast<void>(enableL2);
  memspan::device::need_global_memory("smem_shm_copy_gm2ub", srcGva);
  std::memcpy(dstUb, srcGva, size);
}
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_gm2ub(const AscendC::LocalTensor<T>& dstUb,
                                                const AscendC::GlobalTensor<T>& srcGva,
                                                std::uint32_t size) {
  smem_shm_copy_gm2ub(dstUb.data(), srcGva.data(), size);
}
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_gm2ub(__ubuf__ T* dstUb, __gm__ T* srcGva,
                                                const AscendC::DataCopyExtParams& copyParams) {
  memspan::device::need_global_memory("smem_shm_copy_gm2ub", srcGva);
  memspan::device::copy_rows_to_ub(dstUb, srcGva, copyParams);
}
template <typename T>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_gm2ub(const AscendC::LocalTensor<T>& dstUb,
                                                const AscendC::GlobalTensor<T>& srcGva,
                                                const AscendC::DataCopyExtParams& copyParams) {
  smem_shm_copy_gm2ub(dstUb.data(), srcGva.data(), copyParams);
}

#endif  // MEMSPAN_SMEM_SHM_AICORE_BASE_COPY_H
