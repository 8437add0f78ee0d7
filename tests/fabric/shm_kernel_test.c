/* SPDX-License-Identifier: Apache-2.0
 * Share Memory in kernels: they find their space by its id, and the host's words in its context. */
#include "fabric/shm_kernel.h"

#include "fabric/spaces.h"

enum { kNumbers = 4 * 64, kLastHalf = 32 }; /* of all blocks; in those of one */

/* The next rank, up or down, that this process reaches: itself when there is no other. */
static int next_reached(smem_shm_t space, int rank, int step) {
  int next = rank;
  do next = (next + step + members) % members;
  while (!reaches(space, next));
  return next;
}

static uint32_t number(int rank, int i) {
  return (uint32_t)(rank * 1000 + i + 1);
}

/* A row of 5 numbers, and a gap of 3, in a quarter of 16; in a block's last half alone. */
static int is_in_row(int i) {
  return i % 64 < kLastHalf || (i % 16 < 13 && i % 8 < 5);
}

static void check_kernels(uint32_t id, int rank, smem_shm_t space, char* base, uint64_t size) {
  const int dest = next_reached(space, rank, 1);
  const int writer = next_reached(space, rank, -1);
  uint32_t* const mine = (uint32_t*)(void*)(base + (uint64_t)rank * size);
  uint32_t* const theirs = (uint32_t*)(void*)(base + (uint64_t)dest * size);
  const uint32_t* const written = mine + kNumbers;
  struct kernel_context told = {(uint64_t)(uintptr_t)mine, (uint64_t)(uintptr_t)(theirs + kNumbers),
                                (uint32_t)dest, 0};
  uint32_t length = 0;
  for (int i = 0; i < kNumbers; ++i) mine[i] = number(rank, i);
  CHECK(smem_shm_set_extra_context(space, &told, sizeof told) == SMEM_OK);
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  CHECK(run_copy_kernel(id, (uint32_t)rank, (uint32_t)members, size));
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  for (int i = 0; i < kNumbers; ++i) CHECK(written[i] == (is_in_row(i) ? number(writer, i) : 0));
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  CHECK(run_network_kernel(id));
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  for (int i = 0; i < kNumbers; ++i) CHECK(written[i] == number(writer, i));
  CHECK(smem_shm_get_extra_context(space, &told, sizeof told, &length) == SMEM_OK);
  CHECK(length == sizeof told && told.wrong == 0);
}

/* Both at the same time: each kernel finds its own. */
static void kernels(int rank) {
  static const uint32_t ids[] = {0, 63};
  smem_shm_t spaces[2];
  char* bases[2] = {NULL, NULL};
  begin(rank);
  CHECK(is_no_space(0) && is_no_space(63) && is_no_space(64));
  for (int i = 0; i < 2; ++i) spaces[i] = create(ids[i], rank, kSize << i, &bases[i]);
  for (int i = 0; i < 2; ++i) check_kernels(ids[i], rank, spaces[i], bases[i], kSize << i);
  CHECK(is_no_space(1) && is_no_space(511) && is_no_space(UINT32_MAX));
  for (int i = 0; i < 2; ++i) CHECK(smem_shm_destroy(spaces[i], 0) == SMEM_OK);
  CHECK(is_no_space(0) && is_no_space(63));
  smem_shm_uninit(0);
}
SCENARIO(kernels_of_one, 1, int rank) {
  kernels(rank);
}
SCENARIO(kernels_of_two, 2, int rank) {
  kernels(rank);
}
SCENARIO(kernels_of_five, 5, int rank) {
  kernels(rank);
}
