// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: order. Both are about all that this PE issued, by whichever engine.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_MO_H
#define MEMSPAN_ACLSHMEM_DEVICE_MO_H

#include "../shmem_def.h"

ACLSHMEM_DEVICE void aclshmem_quiet(void) {
  memspan::kernel::quiet();
}
ACLSHMEM_DEVICE void aclshmem_fence(void) {
  memspan::kernel::fence();
}

#endif
