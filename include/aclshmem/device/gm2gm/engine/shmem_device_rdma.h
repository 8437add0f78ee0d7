// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: the names of the engine RoCE. The transport to the peer does the
// transfer, whichever it is; scratch and events are accepted and not used.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_RDMA_H
#define MEMSPAN_ACLSHMEM_DEVICE_RDMA_H

#include "../../shmem_def.h"
#include "shmem_device_atomics.h"

#define MEMSPAN_DEVICE_ENGINE_MOVE(direction)                                                      \
  template <typename T>                                                                            \
  ACLSHMEM_DEVICE void aclshmemx_roce_##direction##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T*, \
                                                        std::uint32_t elem_size, int pe) {         \
    memspan::kernel::direction(dst, src, elem_size, pe);                                           \
  }                                                                                                \
  template <typename T>                                                                            \
  ACLSHMEM_DEVICE void aclshmemx_roce_##direction##_nbi(                                           \
      __gm__ T* dst, __gm__ T* src, __ubuf__ T*, std::uint32_t elem_size, int pe, std::uint32_t) { \
    memspan::kernel::direction(dst, src, elem_size, pe);                                           \
  }                                                                                                \
  template <typename T>                                                                            \
  ACLSHMEM_DEVICE void aclshmemx_roce_##direction##_nbi(                                           \
      AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T>,         \
      std::uint32_t elem_size, int pe) {                                                           \
    memspan::kernel::direction(dst.data(), src.data(), elem_size, pe);                             \
  }                                                                                                \
  template <typename T>                                                                            \
  ACLSHMEM_DEVICE void aclshmemx_roce_##direction##_nbi(                                           \
      AscendC::GlobalTensor<T> dst, AscendC::GlobalTensor<T> src, AscendC::LocalTensor<T>,         \
      std::uint32_t elem_size, int pe, std::uint32_t) {                                            \
    memspan::kernel::direction(dst.data(), src.data(), elem_size, pe);                             \
  }
MEMSPAN_DEVICE_ENGINE_MOVE(put)
MEMSPAN_DEVICE_ENGINE_MOVE(get)
#undef MEMSPAN_DEVICE_ENGINE_MOVE

MEMSPAN_DEVICE_ENGINE_ATOMICS(roce)
MEMSPAN_DEVICE_ENGINE_BITS(roce, and)
MEMSPAN_DEVICE_ENGINE_BITS(roce, or)
MEMSPAN_DEVICE_ENGINE_BITS(roce, xor)

template <typename T>
ACLSHMEM_DEVICE void aclshmemx_roce_quiet(std::uint32_t, __ubuf__ T*, std::uint32_t) {
  memspan::kernel::quiet();
}

// 0: they cannot fail.
ACLSHMEM_DEVICE int aclshmemx_roce_team_sync(aclshmemx_team_t* team) {
  memspan::kernel::sync(team->team_idx);
  return 0;
}
template <typename T>
ACLSHMEM_DEVICE int aclshmemx_roce_team_sync(aclshmemx_team_t* team, __ubuf__ T*, std::uint32_t) {
  return aclshmemx_roce_team_sync(team);
}
ACLSHMEM_DEVICE int aclshmemx_roce_barrier(aclshmemx_team_t* team) {
  memspan::kernel::barrier(team->team_idx);
  return 0;
}
template <typename T>
ACLSHMEM_DEVICE int aclshmemx_roce_barrier(aclshmemx_team_t* team, __ubuf__ T*, std::uint32_t) {
  return aclshmemx_roce_barrier(team);
}
ACLSHMEM_DEVICE void aclshmemx_roce_sync_all() {
  memspan::kernel::sync_all();
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_roce_sync_all(__ubuf__ T*, std::uint32_t) {
  memspan::kernel::sync_all();
}
ACLSHMEM_DEVICE void aclshmemx_roce_barrier_all() {
  memspan::kernel::barrier_all();
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_roce_barrier_all(__ubuf__ T*, std::uint32_t) {
  memspan::kernel::barrier_all();
}

#endif
