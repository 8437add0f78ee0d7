// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: barriers of all blocks of all members.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_CC_H
#define MEMSPAN_ACLSHMEM_DEVICE_CC_H

#include "../shmem_def.h"

ACLSHMEM_DEVICE void aclshmem_barrier(aclshmem_team_t team) {
  memspan::kernel::barrier(team);
}
ACLSHMEM_DEVICE void aclshmem_barrier_all(void) {
  memspan::kernel::barrier_all();
}
// They only meet.
ACLSHMEM_DEVICE void aclshmem_sync(aclshmem_team_t team) {
  memspan::kernel::sync(team);
}
ACLSHMEM_DEVICE void aclshmem_sync_all(void) {
  memspan::kernel::sync_all();
}
[[deprecated("aclshmem_barrier() does the same")]] ACLSHMEM_DEVICE void aclshmemx_barrier_vec(
    aclshmem_team_t team) {
  memspan::kernel::barrier(team);
}
[[deprecated("aclshmem_barrier_all() does the same")]] ACLSHMEM_DEVICE void
aclshmemx_barrier_all_vec(void) {
  memspan::kernel::barrier_all();
}
// All blocks of this PE's grid, without the chip's hardware for it.
ACLSHMEM_DEVICE void aclshmemi_sync_core_soft(void) {
  memspan::kernel::sync_grid();
}
// Accepted without effect.
ACLSHMEM_DEVICE void util_set_ffts_config(std::uint64_t) {}

#endif
