/* SPDX-License-Identifier: Apache-2.0
 * Two PEs on two hosts whose UCX has one-sided access to the heap, by its own shared memory
 * (support/ucx_shared_registrations.c, which this program is linked with). The argument says how
 * large transfers go: native or messages.
 *
 * A registration in a test takes the memory's contents along, but not what is written meanwhile. So
 * each window is touched once while its owner is in a barrier. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLimit = 64 << 10, kMiB = 1 << 20, kRounds = 30 };
static const size_t kAll = (size_t)130 * kMiB; /* three windows */

static int failures = 0;

static void check(int is_right, const char* what) {
  if (is_right) return;
  if (++failures < 10) fprintf(stderr, "PE %d: %s\n", shmem_my_pe(), what);
}

/* Bytes of files whose name has `name` in it. */
static size_t mapped_bytes(const char* name) {
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return 0;
  char line[4096];
  size_t bytes = 0;
  while (fgets(line, sizeof line, maps) != NULL) {
    size_t begin = 0;
    size_t end = 0;
    if (strstr(line, name) != NULL && sscanf(line, "%zx-%zx", &begin, &end) == 2)
      bytes += end - begin;
  }
  fclose(maps);
  return bytes;
}

static void fill(unsigned char* at, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) at[i] = (unsigned char)(seed + i * 7 + (i >> 12));
}

static int is_filled(const unsigned char* at, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i)
    if (at[i] != (unsigned char)(seed + i * 7 + (i >> 12))) return 0;
  return 1;
}

/* Each size, at a place that is not aligned, and over windows. */
static void move_all_sizes(unsigned char* heap, unsigned char* own, int peer) {
  const size_t sizes[] = {1, kLimit - 1, kLimit, kLimit + 1, kMiB, 66 * kMiB, kAll - 3};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const unsigned seed = (unsigned)i * 31;
    if (shmem_my_pe() == 0) {
      fill(own, sizes[i], seed);
      shmem_putmem(heap + 3, own, sizes[i], peer);
    }
    shmem_barrier_all();
    if (shmem_my_pe() == 1) check(is_filled(heap + 3, sizes[i], seed), "a put is not there");
    if (shmem_my_pe() == 0) {
      memset(own, 0, sizes[i]);
      shmem_getmem(own, heap + 3, sizes[i], peer);
      check(is_filled(own, sizes[i], seed), "a get is wrong");
    }
    shmem_barrier_all();
  }
}

/* Who sees the later word sees the data. */
static void keep_order(unsigned char* heap, unsigned char* own, uint64_t* words, int peer) {
  for (unsigned round = 1; round <= kRounds; ++round) {
    const size_t bytes = (size_t)kMiB + round;
    if (shmem_my_pe() == 0) {
      fill(own, bytes, round);
      if (round % 3 == 0) {
        shmem_putmem_signal(heap, own, bytes, &words[0], round, SHMEM_SIGNAL_SET, peer);
      } else if (round % 3 == 1) {
        shmem_putmem_nbi(heap, own, bytes, peer);
        shmem_fence();
        shmem_uint64_p(&words[0], round, peer);
      } else {
        shmem_uint64_p(&words[1], 0, peer); /* under the next */
        shmem_fence();
        shmem_putmem_nbi(heap, own, bytes, peer);
        shmem_quiet();
        shmem_uint64_atomic_set(&words[0], round, peer);
      }
      shmem_uint64_wait_until(&words[0], SHMEM_CMP_EQ, round);
    } else {
      shmem_uint64_wait_until(&words[0], SHMEM_CMP_EQ, round);
      check(is_filled(heap, bytes, round), "the word was there before the data");
      shmem_uint64_p(&words[0], round, peer);
    }
  }
}

static void combine(float* heap) {
  const size_t count = kMiB / sizeof(float);
  for (size_t i = 0; i < count; ++i) heap[i] = (float)(i % 1000) + (float)shmem_my_pe();
  shmem_barrier_all();
  shmem_float_sum_reduce(SHMEM_TEAM_WORLD, heap + count, heap, count);
  for (size_t i = 0; i < count; ++i)
    if (heap[count + i] != 2 * (float)(i % 1000) + 1) check(0, "a sum is wrong");
  shmem_broadcastmem(SHMEM_TEAM_WORLD, heap + 2 * count, heap, count * sizeof *heap, 1);
  for (size_t i = 0; i < count; ++i)
    if (heap[2 * count + i] != (float)(i % 1000) + 1) check(0, "a broadcast is wrong");
  shmem_barrier_all();
}

int main(int count, char** arguments) {
  const int is_native = count > 1 && strcmp(arguments[1], "native") == 0;
  shmem_init();
  const int peer = 1 - shmem_my_pe();
  uint64_t* words = shmem_calloc(2, sizeof *words);
  unsigned char* heap = shmem_malloc(kAll);
  unsigned char* own = malloc(kAll);
  if (heap == NULL || own == NULL || shmem_n_pes() != 2) return EXIT_FAILURE;
  shmem_barrier_all();
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == shmem_my_pe()) shmem_getmem(own, heap, kAll, peer);
    shmem_barrier_all();
  }
  /* Its own windows and the peer's; UCX's streams over shared memory have some, too. */
  check((mapped_bytes("ucx_shm_posix") >= 2 * kAll) == is_native,
        "large transfers go another way than expected");
  move_all_sizes(heap, own, peer);
  keep_order(heap, own, words, peer);
  combine((float*)heap);
  shmem_barrier_all();
  shmem_free(heap);
  shmem_free(words);
  free(own);
  shmem_finalize();
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
