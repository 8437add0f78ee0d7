// SPDX-License-Identifier: Apache-2.0
#include <pshmem.h>
#include <shmem.h>
#include <shmem_api.h>
#include <shmemx.h>

static shmem_team_t team = SHMEM_TEAM_INVALID;
static shmem_ctx_t context = SHMEM_CTX_DEFAULT;
static const shmem_team_t teams[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED};

int headers_in_cxx_uses_them();
int headers_in_cxx_uses_them() {
  if (context != SHMEM_CTX_INVALID) shmem_ctx_quiet(context);
  if (team == teams[0] || team == teams[1]) shmem_team_sync(team);
  shmem_finalize();
  return shmem_team_my_pe(team) + shmem_init_status();
}
