/* SPDX-License-Identifier: Apache-2.0
 * Share Memory that is a GPU's, on the stand-in of the CUDA driver. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "fabric/spaces.h"
#include "support/cuda_driver/gpu.h"

/* Everybody writes into everybody's part that is on his host, and finds that in the own one. */
static void works(int number) {
  enum { kShare = 4096 };
  begin(number);
  use_gpu();
  char* base = NULL;
  smem_shm_t space = create(3, number, 2 * kSize, &base);
  atomic_store(&page->words[number], (uint64_t)(uintptr_t)base);
  static char text[kShare];
  CHECK(gpu_copies(text, base + (size_t)number * 2 * kSize, kShare));
  for (int i = 0; i < kShare; ++i) CHECK(text[i] == 0);
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  for (int i = 0; i < members; ++i) {
    CHECK(page->words[i] == (uint64_t)(uintptr_t)base);
    CHECK(reaches(space, i) == is_near(number, i));
    if (!is_near(number, i)) continue;
    fill(text, kShare, number * 16 + i);
    char* theirs = base + (size_t)i * 2 * kSize + (size_t)number * kShare;
    CHECK(gpu_copies(theirs, text, kShare));
  }
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  for (int i = 0; i < members; ++i) {
    if (!is_near(number, i)) continue;
    CHECK(gpu_copies(text, base + (size_t)number * 2 * kSize + (size_t)i * kShare, kShare));
    CHECK(is_filled(text, kShare, i * 16 + number));
  }
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
  CHECK(smem_shm_destroy(space, 0) == SMEM_OK);
  /* Its addresses are free again. */
  space = create(3, number, kSize, &base);
  CHECK(smem_shm_control_barrier(space) == SMEM_OK);
}
SCENARIO(works_alone, 1, int number) {
  works(number);
}
SCENARIO(works_for_three, 3, int number) {
  works(number);
}

/* A part that was mapped stays when its rank has died. */
SCENARIO(a_part_outlives_its_rank, 2, int number) {
  begin(number);
  use_gpu();
  char* base = NULL;
  create(1, number, kSize, &base);
  if (number == 1) CHECK(gpu_copies(base + kSize, "last words", 11));
  meet(members);
  if (number == 1)
    for (;;) pause();
  end_member(1);
  if (!is_near(0, 1)) return; /* nothing is mapped there, which a driver takes for the host's */
  char text[11] = "";
  CHECK(gpu_copies(text, base + kSize, sizeof text) && strcmp(text, "last words") == 0);
}

SCENARIO(mistakes_are_told, 2, int number) {
  begin_with(number, 5, 5);
  void* gva = NULL;
  REFUSES_TO_MAKE(smem_shm_create(1, 2, (uint32_t)number, kSize + 4096, SMEMS_DATA_OP_MTE, 0, &gva),
                  "memory of cuda is given in multiples of 2097152");
  meet(members);
  if (number == 1) setenv("MEMSPAN_DEVICE", "host", 1);
  REFUSES_TO_MAKE(smem_shm_create(1, 2, (uint32_t)number, kSize, SMEMS_DATA_OP_MTE, 0, &gva),
                  "rank 1 says host, rank 0 said cuda");
}
