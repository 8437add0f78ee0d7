// SPDX-License-Identifier: Apache-2.0
// Put, get and atomics: PE 0 works on PE 1's memory while PE 1 waits in a barrier.
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { kWindow = 64, kRateWindow = 1024 };
static volatile long sink;

static void put_quiet(size_t size, long count) {
  for (long i = 0; i < count; i++) {
    shmem_putmem(bench.destination, bench.local, size, 1);
    shmem_quiet();
  }
}

static void put(size_t size, long count) {
  for (long i = 0; i < count; i++) shmem_putmem(bench.destination, bench.local, size, 1);
  shmem_quiet();
}

static void p_quiet(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) {
    shmem_long_p(bench.word, i, 1);
    shmem_quiet();
  }
}

static void get(size_t size, long count) {
  for (long i = 0; i < count; i++) shmem_getmem(bench.local, bench.destination, size, 1);
}

static void g(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) sink = shmem_long_g(bench.word, 1);
}

static long window_of(size_t size) {
  size_t window = bench.max_bytes / size;
  return window > kWindow ? kWindow : window < 1 ? 1 : (long)window;
}

static void put_nbi(size_t size, long count) {
  long window = window_of(size);
  for (long i = 0; i < count; i++) {
    shmem_putmem_nbi(bench.destination, bench.local, size, 1);
    if ((i + 1) % window == 0) shmem_quiet();
  }
  shmem_quiet();
}

static void get_nbi(size_t size, long count) {
  long window = window_of(size);
  for (long i = 0; i < count; i++) {
    shmem_getmem_nbi(bench.local, bench.destination, size, 1);
    if ((i + 1) % window == 0) shmem_quiet();
  }
  shmem_quiet();
}

static void put_rate(size_t size, long count) {
  for (long i = 0; i < count; i++) {
    long k = i % kRateWindow;
    shmem_putmem_nbi(bench.destination + 8 * k, bench.local + 8 * k, size, 1);
    if (k == kRateWindow - 1) shmem_quiet();
  }
  shmem_quiet();
}

static void get_rate(size_t size, long count) {
  for (long i = 0; i < count; i++) {
    long k = i % kRateWindow;
    shmem_getmem_nbi(bench.local + 8 * k, bench.destination + 8 * k, size, 1);
    if (k == kRateWindow - 1) shmem_quiet();
  }
  shmem_quiet();
}

static void fetch_add(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) sink = shmem_long_atomic_fetch_add(bench.word, 3, 1);
}

static void fetch_inc(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) sink = shmem_long_atomic_fetch_inc(bench.word, 1);
}

static void fetch(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) sink = shmem_long_atomic_fetch(bench.word, 1);
}

static void swap(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) sink = shmem_long_atomic_swap(bench.word, i, 1);
}

static void compare_swap(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) sink = shmem_long_atomic_compare_swap(bench.word, i, i + 1, 1);
}

static void add_quiet(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) {
    shmem_long_atomic_add(bench.word, 1, 1);
    shmem_quiet();
  }
}

static void fetch_add_at_0(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) sink = shmem_long_atomic_fetch_add(bench.word, 1, 0);
}

static void ask_my_pe(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) sink = shmem_my_pe();
}

void latency_group(void) {
  const struct figure set[] = {
      {"put_lat", 8, kLatency, put_quiet, 0},
      {"put_issue", 8, kLatency, put, 0},
      {"p_lat", 8, kLatency, p_quiet, 0},
      {"get_lat", 8, kLatency, get, 0},
      {"g_lat", 8, kLatency, g, 0},
      {"bare_store", 8, kLatency, bare_store(), 0},
      {"bare_load", 8, kLatency, bare_load(), 0},
      {"my_pe", 0, kLatency, ask_my_pe, 0},
  };
  measure_alone(set, sizeof set / sizeof *set);
}

void add_group(void) {
  const struct figure set[] = {
      {"amo_fetch_add", 8, kLatency, fetch_add, 0},
      {"bare_fetch_add", 8, kLatency, bare_fetch_add(), 0},
  };
  measure_alone(set, sizeof set / sizeof *set);
}

void atomics_group(void) {
  static const struct figure alone[] = {
      {"amo_fetch_inc", 8, kLatency, fetch_inc, 0},
      {"amo_fetch", 8, kLatency, fetch, 0},
      {"amo_swap", 8, kLatency, swap, 0},
      {"amo_compare_swap", 8, kLatency, compare_swap, 0},
      {"amo_add_quiet", 8, kLatency, add_quiet, 0},
  };
  static const struct figure contended = {"amo_fetch_add_contended", 8, kLatency, fetch_add_at_0,
                                          0};
  measure_alone(alone, sizeof alone / sizeof *alone);
  measure_together(&contended, 1);
}

void rate_group(void) {
  static const struct figure set[] = {
      {"put_rate", 8, kRate, put_rate, 0},
      {"get_rate", 8, kRate, get_rate, 0},
  };
  measure_alone(set, sizeof set / sizeof *set);
}

static char expected(size_t i) {
  return (char)(i * 7 + 1);
}

static void fill(char* data, size_t size) {
  for (size_t i = 0; i < size; i++) data[i] = expected(i);
}

// Whether the last put (get) of `size` bytes has really moved them. Collective.
static void check(const char* name, size_t size, int where, const char* data) {
  if (bench.me == where)
    for (size_t i = 0; i < size; i++)
      if (data[i] != expected(i)) {
        printf("# ERROR %s size %zu: wrong byte at %zu\n", name, size, i);
        bench.errors++;
        break;
      }
  shmem_barrier_all();
}

// Measures the library's operation in turn with the bare copies, for every size. The bytes are
// checked before a bare copy can have put them right.
static void sweep(struct figure library, const char* const (*bare_names)[kBareCopies], int is_put) {
  static const size_t sizes[] = {8, 64, 512, 4096, 65536, 1 << 20, 8 << 20, 64 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= bench.max_bytes; i++) {
    size_t size = sizes[i];
    fill(is_put ? bench.local : bench.destination, size);
    memset(is_put ? bench.destination : bench.local, 0, size);
    shmem_barrier_all();
    // memspan chooses its way to copy among the first calls of a size (docs/design/0029).
    if (bench.me == 0) library.run(size, 80);
    shmem_barrier_all();
    check(library.name, size, is_put ? 1 : 0, is_put ? bench.destination : bench.local);
    struct figure set[1 + kBareCopies] = {library};
    set[0].size = size;
    int figures = 1;
    for (int copy = 0; bare_names != NULL && copy < kBareCopies; copy++) {
      operation run = bare_copy(is_put, copy, size);
      if (run != NULL)
        set[figures++] = (struct figure){(*bare_names)[copy], size, kBandwidth, run, 0};
    }
    measure_alone(set, figures);
  }
}

void put_group(void) {
  static const char* const names[] = {"bare_put_bw", "bare_put_bw_movsb", "bare_put_bw_avx",
                                      "bare_put_bw_nt"};
  sweep((struct figure){"put_bw", 0, kBandwidth, put, 0}, &names, 1);
}

void get_group(void) {
  static const char* const names[] = {"bare_get_bw", "bare_get_bw_movsb", "bare_get_bw_avx",
                                      "bare_get_bw_nt"};
  sweep((struct figure){"get_bw", 0, kBandwidth, get, 0}, &names, 0);
}

void nbi_group(void) {
  sweep((struct figure){"put_bw_nbi", 0, kBandwidth, put_nbi, 0}, NULL, 1);
  sweep((struct figure){"get_bw_nbi", 0, kBandwidth, get_nbi, 0}, NULL, 0);
}
