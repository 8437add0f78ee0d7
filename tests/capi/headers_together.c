/* SPDX-License-Identifier: Apache-2.0
 * OpenSHMEM first, then the early CANN names: OpenSHMEM keeps its own. */
#include <shmem.h>
#include <shmem_api.h>

int headers_together_uses_them(shmem_init_attr_t* attributes);
int headers_together_uses_them(shmem_init_attr_t* attributes) {
  shmem_team_t team = SHMEM_TEAM_WORLD;
  shmem_finalize();
  return shmem_init_attr(attributes) + shmem_init_status() + shmem_team_sync(team);
}
