// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, SIMT code: the engine MTE for a thread, a warp and a block. All threads of a warp or
// block give the same arguments, and its first does it. Local memory is ordinary memory.
#ifndef MEMSPAN_ACLSHMEM_SIMT_MTE_H
#define MEMSPAN_ACLSHMEM_SIMT_MTE_H

#include "../../../device/shmem_def.h"
#include "../../simt_threads.h"

namespace simt {

ACLSHMEM_DEVICE __gm__ void* aclshmem_ptr(__gm__ void* ptr, int pe) {
  return memspan_kernel_ptr(ptr, pe);
}

#define MEMSPAN_SIMT_MOVE(direction, suffix, scope)                                             \
  template <typename T>                                                                         \
  ACLSHMEM_DEVICE void aclshmemx_mte_##direction##_nbi##suffix(__gm__ T* dst, __gm__ T* src,    \
                                                               std::size_t elem_size, int pe) { \
    if (memspan::device::leads<memspan::kernel::Scope::scope>())                                \
      memspan::kernel::direction##_nbi(dst, src, elem_size, pe);                                \
  }
MEMSPAN_SIMT_MOVE(put, , kThread)
MEMSPAN_SIMT_MOVE(put, _warp, kWarp)
MEMSPAN_SIMT_MOVE(put, _block, kBlock)
MEMSPAN_SIMT_MOVE(get, , kThread)
MEMSPAN_SIMT_MOVE(get, _warp, kWarp)
MEMSPAN_SIMT_MOVE(get, _block, kBlock)
#undef MEMSPAN_SIMT_MOVE

}  // namespace simt

#endif
