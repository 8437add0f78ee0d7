/* SPDX-License-Identifier: Apache-2.0
 * Share Memory among real processes: who does not come, or goes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "fabric/spaces.h"

/* The last rank misses a barrier, a subgroup's and a creation, and everything goes on. */
SCENARIO(stays_in_step, 3, int rank) {
  const int last = members - 1;
  char* base = NULL;
  void* gva = NULL;
  char words[64];
  snprintf(words, sizeof words, "did not come: rank %d", last);
  if (rank != last) {
    begin_with(rank, 1, kSeconds);
    MAKES_NOTHING(
        smem_shm_create(3, (uint32_t)members, (uint32_t)rank, 8, SMEMS_DATA_OP_MTE, 0, &gva),
        SMEM_TIMEOUT, "did not come");
    smem_shm_uninit(0);
  }
  begin_with(rank, kSeconds, rank == last ? kSeconds : 2);
  meet(members);
  smem_shm_t space = create(3, rank, kSize, &base);
  if (rank != last) {
    FAILS(smem_shm_control_barrier(space), SMEM_TIMEOUT, words);
    FAILS(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank), SMEM_TIMEOUT,
          "result:timeout");
  }
  meet(members);
  /* The late one finds the others' parts. */
  if (rank == last) {
    CHECK(smem_shm_control_barrier(space) == SMEM_OK);
    CHECK(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank) == SMEM_OK);
  }
  meet(members);
  check_allgather(space, rank, 100);
  check_barrier(space);
  for (int round = 0; round < 3; ++round)
    CHECK(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank) == SMEM_OK);
}

/* The last but one ends the last one while the first waits for both. */
SCENARIO(survives_a_death, 3, int rank) {
  const int last = members - 1;
  char* base = NULL;
  char words[64];
  snprintf(words, sizeof words, "rank %d", last);
  begin(rank);
  smem_shm_t space = create(0, rank, kSize, &base);
  CHECK(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank) == SMEM_OK);
  base[(size_t)rank * kSize] = (char)rank;
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  if (rank == last) pause();
  if (rank == last - 1) end_member(last);
  const double began = now();
  FAILS(smem_shm_control_barrier(space), SMEM_NOT_CONNECTED, words);
  FAILS(smem_shm_subgroup_barrier(space, "k", (uint32_t)members, (uint32_t)rank),
        SMEM_NOT_CONNECTED, words);
  CHECK(now() - began < kSeconds / 2.0);
  /* What it had written is there. */
  if (reaches(space, last)) CHECK(base[(size_t)last * kSize] == (char)last);
  /* The others still meet, and make a space without it. */
  CHECK(smem_shm_subgroup_barrier(space, "rest", (uint32_t)last, (uint32_t)rank) == SMEM_OK);
  CHECK(smem_shm_destroy(space, 0) == SMEM_OK);
  void* gva = NULL;
  space = smem_shm_create(0, (uint32_t)last, (uint32_t)rank, kSize, SMEMS_DATA_OP_MTE, 0, &gva);
  CHECK(space != NULL && smem_shm_control_barrier(space) == SMEM_OK);
}

/* Rank 2 sees that ranks 0 and 1 wait in a creation of four, where nobody is the fourth, and ends
 * rank 1. */
SCENARIO(dies_in_creation, 4, int rank) {
  void* gva = NULL;
  begin_with(rank, rank == 2 ? 1 : kSeconds, kSeconds);
  if (rank == 3) return;
  const double began = now();
  do CHECK(smem_shm_create(9, 4, (uint32_t)rank, kSize, SMEMS_DATA_OP_MTE, 0, &gva) == NULL);
  while (rank == 2 && strstr(smem_get_last_err_msg(), "1 of 4 members did not come") == NULL);
  if (rank == 2) {
    end_member(1);
    return;
  }
  CHECK(rank == 0);
  FAILS(smem_get_last_err_code(), SMEM_NOT_CONNECTED, "rank 1");
  CHECK(now() - began < kSeconds);
}

/* Who destroys its space ends the others' collectives, and those of its own threads. */
static void* wait_in_barrier(void* space) {
  atomic_store(&page->words[0], 1);
  return (void*)(intptr_t)smem_shm_control_barrier(space);
}

static void* wait_in_subgroup(void* space) {
  atomic_store(&page->words[1], 1);
  return (void*)(intptr_t)smem_shm_subgroup_barrier(space, "k", 2, 1);
}

SCENARIO(destroys_while_others_wait, 3, int rank) {
  char* base = NULL;
  begin(rank);
  smem_shm_t space = create(0, rank, kSize, &base);
  const double began = now();
  if (rank == 1) {
    pthread_t threads[2];
    void* codes[2];
    CHECK(pthread_create(&threads[0], NULL, wait_in_barrier, space) == 0);
    CHECK(pthread_create(&threads[1], NULL, wait_in_subgroup, space) == 0);
    await_word(0, 1);
    await_word(1, 1);
    CHECK(smem_shm_destroy(space, 0) == SMEM_OK);
    for (int i = 0; i < 2; ++i) {
      CHECK(pthread_join(threads[i], &codes[i]) == 0);
      CHECK((intptr_t)codes[i] != SMEM_OK && (intptr_t)codes[i] != SMEM_TIMEOUT);
    }
    atomic_store(&page->words[2], 1);
  } else {
    if (rank == 0) await_word(2, 1);
    /* What rank 1 came to before may still be complete; more does not come. */
    const int32_t code = smem_shm_control_barrier(space);
    CHECK(code == SMEM_OK || is_failure(code, SMEM_NOT_CONNECTED, "rank 1"));
    FAILS(smem_shm_control_barrier(space), SMEM_NOT_CONNECTED, "rank 1");
    if (reaches(space, 1)) base[kSize] = 1; /* of rank 1; stays mapped here */
  }
  CHECK(now() - began < kSeconds / 2.0);
  meet(members);
}
