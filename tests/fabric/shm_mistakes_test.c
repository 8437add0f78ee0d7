/* SPDX-License-Identifier: Apache-2.0
 * Share Memory among real processes: what it refuses. */
#define _GNU_SOURCE
#include <string.h>

#include "fabric/spaces.h"

SCENARIO(sizes_must_agree, 3, int rank) {
  char* base = NULL;
  void* gva = NULL;
  begin(rank);
  REFUSES_TO_MAKE(
      smem_shm_create(0, 3, (uint32_t)rank, rank == 1 ? 8192 : 4096, SMEMS_DATA_OP_MTE, 0, &gva),
      "rank 1 says 8192 bytes, rank 0 said 4096");
  meet(members);
  if (rank != 2) /* two who disagree about how many they are */
    REFUSES_TO_MAKE(
        smem_shm_create(0, rank == 1 ? 2 : 3, (uint32_t)rank, 4096, SMEMS_DATA_OP_MTE, 0, &gva),
        "members");
  meet(members);
  smem_shm_t space = create(0, rank, 4096, &base);
  check_memory(space, base, rank, 4096);
}

SCENARIO(too_little_memory, 2, int rank) {
  char* base = NULL;
  void* gva = NULL;
  begin(rank);
  if (rank == 1) setenv("MEMSPAN_MEMORY_LIMIT", "1m", 1);
  MAKES_NOTHING(smem_shm_create(0, (uint32_t)members, (uint32_t)rank, kSize + 8192,
                                SMEMS_DATA_OP_MTE, 0, &gva),
                SMEM_MALLOC_FAILED, "rank 1: the part of the space needs");
  unsetenv("MEMSPAN_MEMORY_LIMIT");
  smem_shm_t space = create(0, rank, kSize + 8192, &base);
  check_memory(space, base, rank, kSize + 8192);
}

SCENARIO(a_rank_is_one_process, 2, int rank) {
  void* gva = NULL;
  smem_shm_config_t made = config(kSeconds, kSeconds);
  if (rank == 0) begin(0);
  meet(members);
  if (rank == 1) {
    FAILS(smem_shm_init(page->url, 2, 0, 0, &made), SMEM_RES_IN_USE, "rank 0 is taken");
    REFUSES(smem_shm_init(page->url, 3, 1, 0, &made), "others said 2");
    begin(1);
  }
  meet(members);
  /* Both come as the same rank: one of them is told, and the other one meets it afterwards. */
  smem_shm_t space = smem_shm_create(0, 2, 0, 64, SMEMS_DATA_OP_MTE, 0, &gva);
  if (space == NULL) {
    CHECK(is_failure(smem_get_last_err_code(), SMEM_DUPLICATED, "rank 0 is taken"));
    space = smem_shm_create(0, 2, 1, 64, SMEMS_DATA_OP_MTE, 0, &gva);
  }
  CHECK(space != NULL && smem_shm_control_barrier(space) == SMEM_OK);
  MAKES_NOTHING(smem_shm_create(0, 2, 1, 64, SMEMS_DATA_OP_MTE, 0, &gva), SMEM_DUPLICATED,
                "of that id");
}

SCENARIO(different_collectives_are_noticed, 2, int rank) {
  char* base = NULL;
  char bytes[16] = {0}, all[16];
  begin(rank);
  smem_shm_t space = create(0, rank, 0, &base);
  if (rank == 0)
    REFUSES(smem_shm_control_barrier(space), "rank 1 came to an allgather");
  else
    REFUSES(smem_shm_control_allgather(space, bytes, 4, all, 8), "rank 0 came to a barrier");
  REFUSES(smem_shm_subgroup_allgather(space, "k", 2, (uint32_t)rank, bytes, rank == 0 ? 4 : 8, all,
                                      rank == 0 ? 8 : 16),
          "sent");
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
}

static void check_creation_arguments(void) {
  void* gva = NULL;
  const smem_shm_data_op_type mte = SMEMS_DATA_OP_MTE;
  REFUSES_TO_MAKE(smem_shm_create(64, 1, 0, 8, mte, 0, &gva), "invalid id, id range is: [0, 63]");
  REFUSES_TO_MAKE(smem_shm_create(0, 1, 0, 8, mte, 0, NULL), "invalid param, gva is NULL");
  REFUSES_TO_MAKE(smem_shm_create(0, 0, 0, 8, mte, 0, &gva), "rankSize is invalid! input:0");
  REFUSES_TO_MAKE(smem_shm_create(0, 2, 0, 8, mte, 0, &gva), "rankSize is invalid! input:2");
  REFUSES_TO_MAKE(smem_shm_create(0, 1, 1, 8, mte, 0, &gva), "rankId is invalid! rank:1 size:1");
  REFUSES_TO_MAKE(smem_shm_create(0, 1, 0, (64ULL << 30) + 1, mte, 0, &gva),
                  "symmetric size exceeded");
  REFUSES_TO_MAKE(smem_shm_create(0, 1, 0, 8, (smem_shm_data_op_type)8, 0, &gva), "dataOpType");
}

static void check_collective_arguments(smem_shm_t space) {
  static char long_key[65];
  char bytes[8], all[8];
  memset(long_key, 'k', sizeof long_key - 1);
  REFUSES(smem_shm_control_allgather(space, NULL, 8, all, 8), "sendBuf");
  REFUSES(smem_shm_control_allgather(space, bytes, 8, NULL, 8), "recvBuf");
  REFUSES(smem_shm_control_allgather(space, bytes, 0, all, 0),
          "Invalid sendSize, sendSize must be 1~65536");
  REFUSES(smem_shm_control_allgather(space, bytes, 65537, all, 65537),
          "Invalid sendSize, sendSize must be 1~65536");
  REFUSES(smem_shm_control_allgather(space, bytes, 8, all, 7), "recvSize");
  REFUSES(smem_shm_subgroup_barrier(space, NULL, 1, 0), "key is NULL");
  REFUSES(smem_shm_subgroup_barrier(space, "", 1, 0), "key");
  REFUSES(smem_shm_subgroup_barrier(space, long_key, 1, 0), "key too long:64");
  CHECK(smem_shm_subgroup_barrier(space, long_key + 1, 1, 0) == SMEM_OK);
  REFUSES(smem_shm_subgroup_barrier(space, "k", 2, 0), "rankSize is invalid! input:2 option:1");
  REFUSES(smem_shm_subgroup_barrier(space, "k", 1, 1), "rankId is invalid! rank:1 size:1");
  REFUSES(smem_shm_subgroup_allgather(space, "k", 1, 0, bytes, 8, all, 9), "recvSize");
}

static void check_other_arguments(smem_shm_t space) {
  uint32_t number = 0;
  REFUSES(smem_shm_topology_can_reach(space, 1, &number), "remoteRank");
  REFUSES(smem_shm_topology_can_reach(space, 0, NULL), "reachInfo");
  REFUSES(smem_shm_atomic_alloc_value(space, 1025, &number), "limit is too large");
  REFUSES(smem_shm_atomic_alloc_value(space, 0, &number), "limit is 0");
  REFUSES(smem_shm_atomic_alloc_value(space, 1, NULL), "retVal");
  REFUSES(smem_shm_register_exit(space, NULL), "exit is NULL");
  REFUSES(smem_shm_set_extra_context(space, NULL, 8), "context is NULL");
  REFUSES(smem_shm_set_extra_context(space, &number, 0), "size must be between 1~65536");
  REFUSES(smem_shm_set_extra_context(space, &number, 65537), "size must be between 1~65536");
  REFUSES(smem_shm_get_extra_context(space, &number, 4, NULL), "size");
  REFUSES(smem_shm_get_extra_context(space, NULL, 4, &number), "context is NULL");
}

static void check_handles(void) {
  int here = 0;
  REFUSES(smem_shm_control_barrier(NULL), "handle is NULL");
  FAILS(smem_shm_control_barrier(&here), SMEM_NOT_EXIST, "input handle is invalid");
  REFUSES(smem_shm_destroy(NULL, 0), "handle is NULL");
  CHECK(smem_shm_get_global_rank(&here) == UINT32_MAX &&
        smem_shm_get_global_rank_size(NULL) == UINT32_MAX);
}

SCENARIO(refuses_nonsense, 1, int rank) {
  char* base = NULL;
  void* gva = NULL;
  int here = 0;
  smem_shm_config_t made = config(kSeconds, kSeconds), zero = config(0, 1);
  CHECK(smem_shm_query_support_data_operation() == SMEMS_DATA_OP_MTE);
  MAKES_NOTHING(smem_shm_create(0, 1, 0, 8, SMEMS_DATA_OP_MTE, 0, &gva), SMEM_NOT_INIT,
                "smem shm not initialized yet");
  FAILS(smem_shm_destroy(&here, 0), SMEM_NOT_INIT, "smem shm not initialized yet");
  REFUSES(smem_shm_config_init(NULL), "config is null");
  REFUSES(smem_shm_init(NULL, 1, 0, 0, &made), "storeURL is null");
  REFUSES(smem_shm_init("nowhere", 1, 0, 0, &made), "nowhere");
  REFUSES(smem_shm_init(page->url, 0, 0, 0, &made), "worldSize is 0");
  REFUSES(smem_shm_init(page->url, 1025, 0, 0, &made), "worldSize is too large");
  REFUSES(smem_shm_init(page->url, 2, 2, 0, &made), "rankId is 2");
  REFUSES(smem_shm_init(page->url, 1, 0, 0, NULL), "config is null");
  REFUSES(smem_shm_init(page->url, 1, 0, 0, &zero), "shmCreateTimeout is zero");
  begin(rank);
  check_creation_arguments();
  check_handles();
  smem_shm_t space = create(0, rank, 8, &base);
  check_collective_arguments(space);
  check_other_arguments(space);
  smem_shm_uninit(0);
  FAILS(smem_shm_control_barrier(space), SMEM_NOT_INIT, "smem shm not initialized yet");
}
