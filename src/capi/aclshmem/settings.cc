// SPDX-License-Identifier: Apache-2.0
// Settings of the CANN SHMEM API that mean something on its chips only.
#include <fmt/format.h>

#include "capi/aclshmem/export.h"
#include "capi/errors.h"
#include "capi/process_state.h"

namespace memspan::capi {
namespace {

constexpr std::uint32_t kLeastStaging = 128;

int check_staging(const char* call, std::uint32_t bytes) {
  if (bytes >= kLeastStaging) return 0;
  return shmem_failure(
      call, SHMEM_INVALID_VALUE,
      fmt::format("ub_size is {}, allowed are {} bytes and more", bytes, kLeastStaging));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_EXPORT int aclshmemx_set_mte_config(uint64_t, uint32_t, uint32_t) {
  return 0;
}
MEMSPAN_EXPORT int aclshmemx_set_sdma_config(uint64_t, uint32_t, uint32_t) {
  return 0;
}
MEMSPAN_EXPORT int aclshmemx_set_rdma_config(uint64_t, uint32_t ub_size, uint32_t) try {
  return check_staging("aclshmemx_set_rdma_config", ub_size);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)
MEMSPAN_EXPORT int aclshmemx_set_udma_config(uint64_t, uint32_t ub_size, uint32_t) try {
  return check_staging("aclshmemx_set_udma_config", ub_size);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)
MEMSPAN_EXPORT int shmem_mte_set_ub_params(uint64_t, uint32_t, uint32_t) {
  return 0;
}

MEMSPAN_EXPORT uint64_t util_get_ffts_config(void) {
  return 0;
}
MEMSPAN_EXPORT uint64_t shmemx_get_ffts_config(void) {
  return 0;
}
