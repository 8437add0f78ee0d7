// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: numbers of PEs and teams.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_TEAM_H
#define MEMSPAN_ACLSHMEM_DEVICE_TEAM_H

#include "../shmem_def.h"

ACLSHMEM_DEVICE int aclshmem_my_pe(void) {
  return memspan::kernel::my_pe();
}
ACLSHMEM_DEVICE int aclshmem_n_pes(void) {
  return memspan::kernel::n_pes();
}
ACLSHMEM_DEVICE int aclshmem_team_my_pe(aclshmem_team_t team) {
  return memspan::kernel::team_my_pe(team);
}
ACLSHMEM_DEVICE int aclshmem_team_n_pes(aclshmem_team_t team) {
  return memspan::kernel::team_n_pes(team);
}
// -1: the PE is not in dest_team.
ACLSHMEM_DEVICE int aclshmem_team_translate_pe(aclshmem_team_t src_team, int src_pe,
                                               aclshmem_team_t dest_team) {
  return memspan::kernel::team_translate_pe(src_team, src_pe, dest_team);
}
// The number in the world of the team's PE.
ACLSHMEM_DEVICE int aclshmem_team_pe_mapping(aclshmem_team_t team, int pe) {
  return memspan::kernel::team_translate_pe(team, pe, memspan::kernel::kWorld);
}

// A process may be in several jobs; a kernel acts on the one that was current at its launch.
#ifdef MULTI_INSTANCE
ACLSHMEM_DEVICE std::uint64_t aclshmemx_instance_ctx_get(void) {
  return memspan_kernel_instance();
}
// First in a kernel: ends the process when the host launched it in another instance.
ACLSHMEM_DEVICE void aclshmemx_instance_ctx_set(std::uint64_t instance_id) {
  memspan_kernel_need_instance(instance_id);
}
#endif

#endif
