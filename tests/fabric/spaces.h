/* SPDX-License-Identifier: Apache-2.0
 * Spaces of the tests of Share Memory, and what must work in each. */
#ifndef MEMSPAN_TESTS_FABRIC_SPACES_H
#define MEMSPAN_TESTS_FABRIC_SPACES_H

#include <smem/host/smem_shm.h>

#include "fabric/smem_test.h"

/* Longer than anything takes here, and shorter than the test may take. */
enum { kSeconds = 25 };

static inline smem_shm_config_t config(uint32_t create, uint32_t control) {
  smem_shm_config_t made;
  smem_shm_config_init(&made);
  made.startConfigStoreServer = false;
  made.shmInitTimeout = kSeconds;
  made.shmCreateTimeout = create;
  made.controlOperationTimeout = control;
  return made;
}

static inline void begin_with(int rank, uint32_t create, uint32_t control) {
  smem_shm_config_t made = config(create, control);
  CHECK(smem_shm_init(page->url, (uint32_t)members, (uint32_t)rank, 0, &made) == SMEM_OK);
}

static inline void begin(int rank) {
  begin_with(rank, kSeconds, kSeconds);
}

static inline smem_shm_t create(uint32_t id, int rank, uint64_t size, char** base) {
  void* gva = NULL;
  smem_shm_t space =
      smem_shm_create(id, (uint32_t)members, (uint32_t)rank, size, SMEMS_DATA_OP_MTE, 0, &gva);
  CHECK(space != NULL);
  *base = gva;
  return space;
}

static inline int reaches(smem_shm_t space, int rank) {
  uint32_t ways = 0;
  CHECK(smem_shm_topology_can_reach(space, (uint32_t)rank, &ways) == SMEM_OK);
  return ways != 0;
}

/* Everybody writes into everybody's part that is on his host, and finds what all of them wrote into
 * the own one. */
static inline void check_memory(smem_shm_t space, char* base, int rank, size_t size) {
  const size_t share = size / (size_t)members;
  atomic_store(&page->words[rank], (uint64_t)(uintptr_t)base);
  for (size_t i = 0; i < size; ++i) CHECK(base[(size_t)rank * size + i] == 0);
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  for (int i = 0; i < members; ++i) {
    CHECK(page->words[i] == (uint64_t)(uintptr_t)base);
    if (reaches(space, i))
      fill(base + (size_t)i * size + (size_t)rank * share, share, rank * 16 + i);
  }
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  for (int i = 0; i < members; ++i)
    if (reaches(space, i))
      CHECK(is_filled(base + (size_t)rank * size + (size_t)i * share, share, i * 16 + rank));
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
}

static inline void check_allgather(smem_shm_t space, int rank, uint32_t bytes) {
  char* mine = malloc(bytes);
  char* all = malloc((size_t)bytes * (size_t)members);
  for (int round = 0; round < 3; ++round) {
    fill(mine, bytes, rank + round);
    CHECK(smem_shm_control_allgather(space, mine, bytes, all, bytes * (uint32_t)members) ==
          SMEM_OK);
    for (int i = 0; i < members; ++i) CHECK(is_filled(all + (size_t)i * bytes, bytes, i + round));
  }
  free(mine);
  free(all);
}

/* Nobody leaves before everybody came. */
static inline void check_barrier(smem_shm_t space) {
  for (uint64_t round = 1; round <= 50; ++round) {
    atomic_fetch_add(&page->words[100], 1);
    CHECK(smem_shm_control_barrier(space) == SMEM_OK);
    CHECK(page->words[100] >= round * (uint64_t)members);
  }
}

#endif
