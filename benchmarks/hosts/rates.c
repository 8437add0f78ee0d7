// SPDX-License-Identifier: Apache-2.0
// What a PE gets from one on another host: bandwidth of puts and gets, times of small calls and of
// collectives. OpenSHMEM alone, so that other implementations run it, too; two_hosts.py does.
//
//   rates (waits|sleeps) [quick]     2 PEs; the target waits in a call, or sleeps outside of any
//
// A line for each: "NAME BYTES VALUE UNIT".
#include <poll.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rounds.h"

enum { kSmallCalls = 2000, kLargest = 64 << 20 };

static long word = 7;
static volatile long is_done;
static int is_quick;

static void print(const char* name, size_t bytes, double value, const char* unit) {
  printf("%s %zu %.4f %s\n", name, bytes, value, unit);
  fflush(stdout);
}

static void measure_bandwidth(char* there, char* here) {
  for (size_t bytes = 64 << 10; bytes <= kLargest; bytes *= 4) {
    const size_t total = (size_t)(is_quick ? kLargest : 4 * kLargest);
    const int calls = (int)(total / bytes);
    for (int is_get = 0; is_get < 2; ++is_get) {
      shmem_putmem(there, here, bytes, 1);
      shmem_quiet();
      const double start = now_us();
      for (int i = 0; i < calls; ++i) {
        if (is_get)
          shmem_getmem_nbi(here, there, bytes, 1);
        else
          shmem_putmem_nbi(there, here, bytes, 1);
      }
      shmem_quiet();
      print(is_get ? "get" : "put", bytes, (double)calls * (double)bytes / 1e3 / (now_us() - start),
            "GB/s");
    }
  }
}

// The median of calls, each timed alone.
#define TIME_SMALL(name, call)                      \
  do {                                              \
    static double times[kSmallCalls];               \
    const int calls = is_quick ? 200 : kSmallCalls; \
    for (int i = -20; i < calls; ++i) {             \
      const double start = now_us();                \
      call;                                         \
      if (i >= 0) times[i] = now_us() - start;      \
    }                                               \
    print(name, 8, median(times, calls), "us");     \
  } while (0)

static void measure_small(void) {
  long got = 0;
  TIME_SMALL("put+quiet", (shmem_long_put(&word, &got, 1, 1), shmem_quiet()));
  TIME_SMALL("get", shmem_long_get(&got, &word, 1, 1));
  TIME_SMALL("fetch-add", got += shmem_long_atomic_fetch_add(&word, 1, 1));
}

// The form with active sets, which older implementations have, too.
static void measure_collectives(float* dest, float* source, float* work) {
  static long sync[SHMEM_REDUCE_SYNC_SIZE];
  const int me = shmem_my_pe();
  for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) sync[i] = SHMEM_SYNC_VALUE;
  for (size_t bytes = 0; bytes <= 1 << 20; bytes = bytes == 0 ? 8 : bytes << 17) {
    const int calls = is_quick ? 20 : bytes > 8 ? 100 : kSmallCalls;
    double start = 0;
    for (int i = -calls; i < calls; ++i) { /* as many before, which are not timed */
      if (i == 0) shmem_barrier_all();
      if (i == 0) start = now_us();
      if (bytes == 0)
        shmem_barrier_all();
      else
        shmem_float_sum_to_all(dest, source, (int)(bytes / sizeof *dest), 0, 0, 2, work, sync);
    }
    if (me == 0)
      print(bytes == 0 ? "barrier" : "allreduce", bytes, (now_us() - start) / calls, "us");
  }
}

int main(int argc, char** argv) {
  const int sleeps = argc > 1 && strcmp(argv[1], "sleeps") == 0;
  is_quick = argc > 2;
  if (argc < 2 || (!sleeps && strcmp(argv[1], "waits") != 0)) {
    fprintf(stderr, "rates: what does the target do? waits or sleeps\n");
    return 2;
  }
  shmem_init();
  if (shmem_n_pes() != 2) {
    fprintf(stderr, "rates: needs 2 PEs\n");
    shmem_finalize();
    return 2;
  }
  char* there = shmem_malloc(kLargest);
  char* here = malloc(kLargest);
  memset(there, 1, kLargest);
  memset(here, 2, kLargest);
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    measure_small();
    if (!sleeps) measure_bandwidth(there, here);
    shmem_long_p((long*)&is_done, 1, 1);
    shmem_quiet();
  }
  while (shmem_my_pe() == 1 && sleeps && !is_done) poll(NULL, 0, 10);
  shmem_barrier_all();
  if (!sleeps)
    measure_collectives((float*)there, (float*)(there + (2 << 20)), (float*)(there + (4 << 20)));
  shmem_free(there);
  free(here);
  shmem_finalize();
  return 0;
}
