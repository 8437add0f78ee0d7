// SPDX-License-Identifier: Apache-2.0
// Device code that says which instance it is for (MULTI_INSTANCE).
#include "instances.h"

#include <shmem.h>

__global__ __aicore__ void instance_kernel(std::int64_t* words, std::uint64_t instance,
                                           std::int64_t value) {
  aclshmemx_instance_ctx_set(instance);
  if (aclshmemx_instance_ctx_get() != instance) return;  // the test would wait for ever
  std::int64_t* const word = words + 1 + AscendC::GetBlockIdx();
  aclshmem_int64_p(word, value, (aclshmem_my_pe() + 1) % aclshmem_n_pes());
  aclshmem_int64_wait_until(word, ACLSHMEM_CMP_EQ, value);
}
