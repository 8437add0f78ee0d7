// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM without memory (no_memory.h).
#include <aclshmem.h>

#include "no_memory.h"

namespace {

aclshmemx_init_attr_t attributes;
aclshmemx_uniqueid_t id;
aclshmem_team_t team;
void* block;

int initialize() {
  return aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes);
}

}  // namespace

namespace no_memory {

void check_cann() {
  attributes.n_pes = 1;
  attributes.local_mem_size = 1 << 20;
  attributes.option_attr.data_op_engine_type = ACLSHMEM_DATA_OP_MTE;
  attributes.option_attr.shm_init_timeout = 10;
  attributes.option_attr.shm_create_timeout = 10;
  attributes.option_attr.control_operation_timeout = 10;
  sweep_once(
      {"aclshmemx_init_attr", ACLSHMEM_MALLOC_FAILED, initialize, [] { aclshmem_finalize(); }});
  check(initialize() == 0, "aclshmemx_init_attr");
  sweep_all({
      {"aclshmemx_get_uniqueid", ACLSHMEM_MALLOC_FAILED, [] { return aclshmemx_get_uniqueid(&id); },
       nullptr},
      {"aclshmem_malloc", ACLSHMEM_MALLOC_FAILED,
       [] { return (block = aclshmem_malloc(64)) == nullptr ? ACLSHMEM_MALLOC_FAILED : 0; },
       [] { aclshmem_free(block); }},
      {"aclshmem_team_split_strided", ACLSHMEM_MALLOC_FAILED,
       [] { return aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, 1, 1, &team); },
       [] { aclshmem_team_destroy(team); }},
  });
  aclshmem_finalize();
}

}  // namespace no_memory
