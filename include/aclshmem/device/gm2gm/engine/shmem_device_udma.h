// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: the names of the engine UDMA. Scratch, events, pipelines and relays are
// accepted and not used: each PE is reached directly.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_UDMA_H
#define MEMSPAN_ACLSHMEM_DEVICE_UDMA_H

#include "../../shmem_def.h"
#include "shmem_device_atomics.h"

ACLSHMEM_DEVICE void aclshmemx_set_udma_config(std::uint64_t, std::uint32_t, std::uint32_t) {}
ACLSHMEM_DEVICE void aclshmemx_udma_quiet(int) {
  memspan::kernel::quiet();
}

// `sync_id` of the last one has no default there.
#define MEMSPAN_DEVICE_ENGINE_MOVE(direction, last)                                                \
  template <typename T, pipe_t = PIPE_MTE3>                                                        \
  ACLSHMEM_DEVICE void aclshmemx_udma_##direction##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T*, \
                                                        std::uint32_t elem_size, int pe,           \
                                                        std::uint32_t = 0) {                       \
    memspan::kernel::direction(dst, src, elem_size, pe);                                           \
  }                                                                                                \
  template <typename T, pipe_t = PIPE_MTE3>                                                        \
  ACLSHMEM_DEVICE void aclshmemx_udma_##direction##_nbi(                                           \
      const AscendC::GlobalTensor<T>& dst, const AscendC::GlobalTensor<T>& src,                    \
      const AscendC::LocalTensor<T>&, std::uint32_t elem_size, int pe, std::uint32_t last) {       \
    memspan::kernel::direction(dst.data(), src.data(), elem_size, pe);                             \
  }                                                                                                \
  template <typename T, pipe_t = PIPE_MTE3>                                                        \
  ACLSHMEM_DEVICE void aclshmemx_udma_relay_##direction##_nbi(                                     \
      __gm__ T* dst, __gm__ T* src, __ubuf__ T*, std::uint32_t elem_size, int pe, int,             \
      std::uint32_t = 0) {                                                                         \
    memspan::kernel::direction(dst, src, elem_size, pe);                                           \
  }                                                                                                \
  template <typename T, pipe_t = PIPE_MTE3>                                                        \
  ACLSHMEM_DEVICE void aclshmemx_udma_relay_##direction##_nbi(                                     \
      const AscendC::GlobalTensor<T>& dst, const AscendC::GlobalTensor<T>& src,                    \
      const AscendC::LocalTensor<T>&, std::uint32_t elem_size, int pe, int, std::uint32_t = 0) {   \
    memspan::kernel::direction(dst.data(), src.data(), elem_size, pe);                             \
  }
MEMSPAN_DEVICE_ENGINE_MOVE(put, )
MEMSPAN_DEVICE_ENGINE_MOVE(get, = 0)
#undef MEMSPAN_DEVICE_ENGINE_MOVE

// The signal is set.
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_udma_put_signal_nbi(__gm__ T* dst, __gm__ T* src,
                                                   std::uint32_t elem_size,
                                                   __gm__ std::uint64_t* sig_addr,
                                                   std::uint64_t signal, int pe) {
  memspan::kernel::put_signal(dst, src, elem_size, sig_addr, signal,
                              memspan::kernel::SignalOp::kSet, pe);
}
template <typename T, pipe_t = PIPE_MTE3>
ACLSHMEM_DEVICE void aclshmemx_udma_put_signal_nbi(__gm__ T* dst, __gm__ T* src,
                                                   std::uint32_t elem_size,
                                                   __gm__ std::uint64_t* sig_addr,
                                                   std::uint64_t signal, int pe,
                                                   __ubuf__ std::uint8_t*, std::uint32_t = 0) {
  memspan::kernel::put_signal(dst, src, elem_size, sig_addr, signal,
                              memspan::kernel::SignalOp::kSet, pe);
}

MEMSPAN_DEVICE_ENGINE_ATOMICS(udma)
MEMSPAN_DEVICE_ENGINE_BITS(udma, and)
MEMSPAN_DEVICE_ENGINE_BITS(udma, or)
MEMSPAN_DEVICE_ENGINE_BITS(udma, xor)

#endif
