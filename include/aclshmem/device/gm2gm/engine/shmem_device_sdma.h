// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: the names of the engine SDMA. Scratch and events are accepted and not
// used.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_SDMA_H
#define MEMSPAN_ACLSHMEM_DEVICE_SDMA_H

#include "../../shmem_def.h"

enum class ACLSHMEMCMOTYPE : std::uint32_t {
  CMO_TYPE_PREFETCH = 6,
  CMO_TYPE_WRITEBACK = 7,
  CMO_TYPE_INVALID = 8,
  CMO_TYPE_FLUSH = 9,
  CMO_TYPE_MAX = 10
};

ACLSHMEM_DEVICE void aclshmemx_set_sdma_config(std::uint64_t, std::uint32_t, std::uint32_t) {}

#define MEMSPAN_DEVICE_ENGINE_MOVE(direction)                                                      \
  template <typename T>                                                                            \
  ACLSHMEM_DEVICE void aclshmemx_sdma_##direction##_nbi(__gm__ T* dst, __gm__ T* src, __ubuf__ T*, \
                                                        std::uint32_t, std::uint32_t elem_size,    \
                                                        int pe, std::uint32_t) {                   \
    memspan::kernel::direction(dst, src, elem_size, pe);                                           \
  }                                                                                                \
  template <typename T>                                                                            \
  ACLSHMEM_DEVICE void aclshmemx_sdma_##direction##_nbi(                                           \
      AscendC::GlobalTensor<T>& dst, AscendC::GlobalTensor<T>& src, AscendC::LocalTensor<T>&,      \
      std::uint32_t elem_size, int pe, std::uint32_t) {                                            \
    memspan::kernel::direction(dst.data(), src.data(), elem_size, pe);                             \
  }
MEMSPAN_DEVICE_ENGINE_MOVE(put)
MEMSPAN_DEVICE_ENGINE_MOVE(get)
#undef MEMSPAN_DEVICE_ENGINE_MOVE

template <typename T>
ACLSHMEM_DEVICE void aclshmemx_sdma_quiet(__ubuf__ T*, std::uint32_t, std::uint32_t) {
  memspan::kernel::quiet();
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_sdma_quiet(AscendC::LocalTensor<T>&, std::uint32_t) {
  memspan::kernel::quiet();
}

// Earlier operations are complete, so there is nothing to notify.
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_sdma_notify_record(__ubuf__ T*, std::uint32_t, std::uint32_t) {
  memspan::kernel::quiet();
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_sdma_notify_record(AscendC::LocalTensor<T>&, std::uint32_t) {
  memspan::kernel::quiet();
}

// A hint: the processor fetches lines into its caches; other kinds do nothing.
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_cmo_nbi(__gm__ T* src, std::uint32_t elem_size,
                                       ACLSHMEMCMOTYPE cmo_type, __ubuf__ T*, std::uint32_t,
                                       std::uint32_t) {
  if (cmo_type != ACLSHMEMCMOTYPE::CMO_TYPE_PREFETCH) return;
  const auto* const bytes = reinterpret_cast<const char*>(src);
  for (std::size_t i = 0; i < elem_size * sizeof(T); i += 64) __builtin_prefetch(bytes + i);
}
template <typename T>
ACLSHMEM_DEVICE void aclshmemx_cmo_nbi(AscendC::GlobalTensor<T>& src, std::uint32_t elem_size,
                                       ACLSHMEMCMOTYPE cmo_type, AscendC::LocalTensor<T>& buf,
                                       std::uint32_t sync_id) {
  aclshmemx_cmo_nbi(src.data(), elem_size, cmo_type, buf.data(), 0, sync_id);
}

#endif
