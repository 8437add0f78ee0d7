// SPDX-License-Identifier: Apache-2.0
// Figures in which several PEs work at once: ping-pongs between PE 0 and PE 1, barriers.
#include <stdio.h>
#include <unistd.h>

#include "bench.h"

static void pingpong_flag(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) {
    long value = ++bench.sequence;
    if (bench.me == 1) shmem_long_wait_until(bench.flag, SHMEM_CMP_EQ, value);
    shmem_long_p(bench.flag, value, 1 - bench.me);
    if (bench.me == 0) shmem_long_wait_until(bench.flag, SHMEM_CMP_EQ, value);
  }
}

static void pingpong_data(size_t size, long count) {
  for (long i = 0; i < count; i++) {
    long value = ++bench.sequence;
    if (bench.me == 1) shmem_long_wait_until(bench.flag, SHMEM_CMP_EQ, value);
    shmem_putmem(bench.destination, bench.local, size, 1 - bench.me);
    shmem_fence();
    shmem_long_p(bench.flag, value, 1 - bench.me);
    if (bench.me == 0) shmem_long_wait_until(bench.flag, SHMEM_CMP_EQ, value);
  }
}

static long* ring_word;  // symmetric

// A word goes once around all PEs.
static void ring(size_t size, long count) {
  static long sequence;
  (void)size;
  for (long i = 0; i < count; i++) {
    long value = ++sequence;
    if (bench.me != 0) shmem_long_wait_until(ring_word, SHMEM_CMP_EQ, value);
    shmem_long_p(ring_word, value, (bench.me + 1) % bench.npes);
    if (bench.me == 0) shmem_long_wait_until(ring_word, SHMEM_CMP_EQ, value);
  }
}

#if BENCH_SIGNAL
static uint64_t* signal_word;  // symmetric
static uint64_t signal_sequence;

static void pingpong_signal(size_t size, long count) {
  for (long i = 0; i < count; i++) {
    uint64_t value = ++signal_sequence;
    if (bench.me == 1) shmem_signal_wait_until(signal_word, SHMEM_CMP_EQ, value);
    shmem_putmem_signal(bench.destination, bench.local, size, signal_word, value, SHMEM_SIGNAL_SET,
                        1 - bench.me);
    if (bench.me == 0) shmem_signal_wait_until(signal_word, SHMEM_CMP_EQ, value);
  }
}
static operation signal_setup(void) {
  if (!signal_word) signal_word = lone_word();
  shmem_barrier_all();
  return pingpong_signal;
}
#else
static operation signal_setup(void) {
  return NULL;
}  // not in this implementation's API
#endif

static void barrier_all(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) shmem_barrier_all();
}

static void sync_all(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) shmem_sync_all();
}

void flag_group(void) {
  const struct figure set[] = {
      {"pingpong_flag", 8, kHalfRound, pingpong_flag, 2},
      {"bare_pingpong", 8, kHalfRound, bare_pingpong(), 2},
  };
  measure_together(set, sizeof set / sizeof *set);
}

void ring_group(void) {
  ring_word = lone_word();
  shmem_barrier_all();
  const struct figure set[] = {{"ring", 8, kLatency, ring, 0}};
  measure_together(set, 1);
}

void data_group(void) {
  static const size_t sizes[] = {8, 512, 4096, 65536, 1 << 20};
  operation signal = signal_setup();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= bench.max_bytes; i++) {
    const struct figure set[] = {
        {"pingpong_data", sizes[i], kHalfRound, pingpong_data, 2},
        {"pingpong_signal", sizes[i], kHalfRound, signal, 2},
    };
    measure_together(set, sizeof set / sizeof *set);
  }
}

// The bare message bounds a barrier's stage only where every PE has a core.
void barrier_group(void) {
  int crowded = bench.npes > sysconf(_SC_NPROCESSORS_ONLN);
  const struct figure set[] = {
      {"barrier_all", 0, kLatency, barrier_all, 0},
      {"sync_all", 0, kLatency, sync_all, 0},
      {"bare_one_way", 8, kHalfRound, bare_pingpong(), 2},
  };
  measure_together(set, crowded ? 2 : 3);
}
