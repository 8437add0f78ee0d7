/* SPDX-License-Identifier: Apache-2.0
 * Big Memory whose device memory is a GPU's, on the stand-in of the CUDA driver: what is different
 * from memory of the host. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/pools.h"
#include "support/cuda_driver/gpu.h"

static int is_there(smem_bm_t pool, const char* from, size_t bytes, int seed) {
  static char text[kSize];
  memset(text, 0, bytes);
  CHECK(copy(pool, from, text, bytes, SMEMB_COPY_G2H, 0) == SMEM_OK);
  return is_filled(text, bytes, seed);
}

static void give(smem_bm_t pool, char* to, size_t bytes, int seed) {
  static char text[kSize];
  fill(text, bytes, seed);
  CHECK(copy(pool, text, to, bytes, SMEMB_COPY_H2G, 0) == SMEM_OK);
}

/* A load of the processor ends the process, and no copy of the library is one. */
SCENARIO(a_load_faults, 1, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, kSize);
  char* place = device_of(pool, 0);
  give(pool, place, 1000, 1);
  CHECK(is_there(pool, place, 1000, 1));
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(*(volatile char*)place);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* The local end is memory of the GPU that the program has allocated, on either side, single and in
 * batches, at once and in the background. */
SCENARIO(the_programs_own_memory, 2, int number) {
  enum { kBytes = 70001, kPieces = 7 };
  begin(number);
  use_gpu();
  smem_bm_t pool = plain_pool(1, kSize, kSize);
  static char text[kBytes];
  char* mine = gpu_alloc(kSize);
  const int other = 1 - number;
  fill(text, kBytes, number);
  CHECK(gpu_copies(mine, text, kBytes));
  meet(members);
  CHECK(copy(pool, mine, device_of(pool, other) + 11, kBytes, SMEMB_COPY_L2G, 0) == SMEM_OK);
  CHECK(copy(pool, mine, host_of(pool, other) + 13, kBytes, SMEMB_COPY_L2GH, 0) == SMEM_OK);
  meet(members);
  CHECK(is_there(pool, device_of(pool, number) + 11, kBytes, other));
  CHECK(is_there(pool, host_of(pool, number) + 13, kBytes, other));
  for (int kind = 0; kind < 2; ++kind) {
    const char* from = kind == 0 ? device_of(pool, other) + 11 : host_of(pool, other) + 13;
    CHECK(copy(pool, from, mine + kSize / 2, kBytes, SMEMB_COPY_G2L, 0) == SMEM_OK);
    memset(text, 0, kBytes);
    CHECK(gpu_copies(text, mine + kSize / 2, kBytes));
    CHECK(is_filled(text, kBytes, number));
  }
  for (uint32_t flags = 0; flags <= ASYNC_COPY_FLAG; flags += ASYNC_COPY_FLAG) {
    void *from[kPieces], *to[kPieces];
    uint64_t bytes[kPieces];
    for (int i = 0; i < kPieces; ++i) {
      from[i] = mine + i * 1000;
      to[i] = device_of(pool, other) + kSize / 2 + i * 1000;
      bytes[i] = 1000;
    }
    smem_batch_copy_params params = {from, to, bytes, kPieces};
    CHECK(smem_bm_copy_batch(pool, &params, SMEMB_COPY_L2G, flags) == SMEM_OK);
    CHECK(smem_bm_wait(pool) == SMEM_OK);
    meet(members);
    CHECK(is_there(pool, device_of(pool, number) + kSize / 2, kPieces * 1000, other));
    meet(members);
  }
}

/* Member 2 is killed: its memory is not reached any more, and a new process takes its place. */
SCENARIO(survives_a_death, 3, int number) {
  const int is_reborn = number == 2 && atomic_load(&page->words[9]) == 1;
  begin(number);
  smem_bm_t pool = plain_pool(1, 0, kSize);
  give(pool, device_of(pool, number), 1000, number + is_reborn * 50);
  if (is_reborn) {
    meet(members);
    meet(members);
    return;
  }
  meet(members);
  if (number == 2)
    for (;;) pause();
  CHECK(is_there(pool, device_of(pool, 2), 1000, 2));
  meet(members - 1);
  if (number == 0) end_member(2);
  const double killed = now();
  char byte;
  while (copy(pool, device_of(pool, 2), &byte, 1, SMEMB_COPY_G2H, 0) == SMEM_OK)
    CHECK(now() - killed < 1);
  CHECK(smem_get_last_err_code() == SMEM_NOT_CONNECTED);
  CHECK(is_there(pool, device_of(pool, 1 - number), 1000, 1 - number));
  meet(members - 1);
  if (number == 0) {
    atomic_store(&page->words[9], 1);
    restart_member(2);
  }
  meet(members);
  CHECK(is_there(pool, device_of(pool, 2), 1000, 52));
  meet(members);
}

SCENARIO(mistakes_are_told, 2, int number) {
  begin(number);
  smem_bm_t pool = plain_pool(1, kSize, kSize);
  meet(members);
  char byte = 0;
  char* place = device_of(pool, 1 - number);
  REFUSES(copy(pool, (char*)16, place, 100, SMEMB_COPY_H2G, 0), "there is no memory at");
  REFUSES(copy(pool, place, "constant", 5, SMEMB_COPY_G2H, 0), "may not be written");
  REFUSES(copy(pool, place + kSize - 1, &byte, 2, SMEMB_COPY_G2H, 0), "is not entirely in");
  CHECK(copy(pool, &byte, place, 1, SMEMB_COPY_H2G, 0) == SMEM_OK);
  meet(members);
}

/* A pool has one kind of device memory. */
SCENARIO(devices_must_agree, 2, int number) {
  begin(number);
  if (number == 0) CHECK(plain_pool(1, 0, kSize) != NULL);
  meet(members);
  if (number == 1) {
    setenv("MEMSPAN_DEVICE", "host", 1);
    REFUSES_TO_MAKE(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, 0, kSize, 0), "device memory (cuda)");
    REFUSES(smem_get_last_err_code(), "device memory (host)");
    setenv("MEMSPAN_DEVICE", "gpu", 1);
    REFUSES_TO_MAKE(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, 0, kSize, 0),
                    "MEMSPAN_DEVICE is \"gpu\", allowed are host, cuda and cuda:N");
  }
  meet(members);
}

SCENARIO(too_little_device_memory, 1, int number) {
  if (gpu_standin_function("standin_handles") == NULL) return; /* a GPU has more */
  setenv("MEMSPAN_TEST_CUDA_BYTES", "8388608", 1);
  begin(number);
  for (int i = 0; i < 3; ++i)
    MAKES_NOTHING(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, 10 * kMiB, 0), SMEM_MALLOC_FAILED,
                  "8 MiB of 8 MiB are free");
  CHECK(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, 8 * kMiB, 0) != NULL);
}
