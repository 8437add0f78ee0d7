// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, SIMT code: numbers of PEs and teams.
#ifndef MEMSPAN_ACLSHMEM_SIMT_TEAM_H
#define MEMSPAN_ACLSHMEM_SIMT_TEAM_H

#include "../../device/shmem_def.h"

namespace simt {

ACLSHMEM_DEVICE int aclshmem_my_pe(void) {
  return memspan::kernel::my_pe();
}
ACLSHMEM_DEVICE int aclshmem_n_pes(void) {
  return memspan::kernel::n_pes();
}

}  // namespace simt

#endif
