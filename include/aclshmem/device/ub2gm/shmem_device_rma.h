// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: put from and get to local tensors. Plain pointers to local memory are
// those of <device/gm2gm/shmem_device_rma.h>, since there is one kind of memory here.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_UB_RMA_H
#define MEMSPAN_ACLSHMEM_DEVICE_UB_RMA_H

#include "../gm2gm/shmem_device_rma.h"

#define MEMSPAN_DEVICE_UB(name, type)                                                        \
  ACLSHMEM_DEVICE void aclshmem_##name##_put_nbi(AscendC::GlobalTensor<type> dst,            \
                                                 AscendC::LocalTensor<type> src,             \
                                                 std::uint32_t elem_size, std::int32_t pe) { \
    memspan::kernel::put(dst.data(), src.data(), elem_size, pe);                             \
  }                                                                                          \
  ACLSHMEM_DEVICE void aclshmem_##name##_put_nbi(                                            \
      AscendC::GlobalTensor<type> dst, AscendC::LocalTensor<type> src,                       \
      const non_contiguous_copy_param& copy_params, std::int32_t pe) {                       \
    memspan::kernel::put_2d(dst.data(), src.data(), memspan::device::rows(copy_params), pe); \
  }                                                                                          \
  ACLSHMEM_DEVICE void aclshmem_##name##_get_nbi(AscendC::LocalTensor<type> dst,             \
                                                 AscendC::GlobalTensor<type> src,            \
                                                 std::uint32_t elem_size, int pe) {          \
    memspan::kernel::get(dst.data(), src.data(), elem_size, pe);                             \
  }                                                                                          \
  ACLSHMEM_DEVICE void aclshmem_##name##_get_nbi(                                            \
      AscendC::LocalTensor<type> dst, AscendC::GlobalTensor<type> src,                       \
      const non_contiguous_copy_param& copy_params, int pe) {                                \
    memspan::kernel::get_2d(dst.data(), src.data(), memspan::device::rows(copy_params), pe); \
  }
MEMSPAN_DEVICE_TYPES(MEMSPAN_DEVICE_UB)
#undef MEMSPAN_DEVICE_UB

#endif
