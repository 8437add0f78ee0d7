// SPDX-License-Identifier: Apache-2.0
// A kernel that acts on the instance that it is told.
#define MULTI_INSTANCE
#include "kernel_operator.h"
#include "shmem.h"

#include "multi_instance_kernel.h"

extern "C" __global__ __aicore__ void exchange(GM_ADDR inbox, int32_t value, uint64_t instance) {
  aclshmemx_instance_ctx_set(instance);
  __gm__ int32_t* mine = (__gm__ int32_t*)inbox + AscendC::GetBlockIdx() * aclshmem_n_pes();
  for (int pe = 0; pe < aclshmem_n_pes(); ++pe) aclshmem_int32_p(mine + aclshmem_my_pe(), value, pe);
  aclshmem_barrier_all();
}

void launch_exchange(uint32_t blocks, void* stream, void* inbox, int32_t value, uint64_t instance) {
  exchange<<<blocks, nullptr, stream>>>(static_cast<uint8_t*>(inbox), value, instance);
}
