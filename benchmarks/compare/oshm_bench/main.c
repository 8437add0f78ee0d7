// SPDX-License-Identifier: Apache-2.0
// oshm_bench: a micro-benchmark for any implementation of OpenSHMEM 1.4 or later.
//
//   build   oshcc -std=gnu11 -O2 -o oshm_bench *.c
//   run     oshrun -n 2 ./oshm_bench [options]
//
//   -r N      repetitions of each figure                     (default 21)
//   -t MS     least time of one repetition, milliseconds     (default 3)
//   -m BYTES  largest message of the bandwidth sweeps        (default 64 MiB)
//   -o LIST   run only these groups, a comma-separated list of
//             lat,add,amo,flag,data,ring,barrier,allreduce,coll,rate,put,get,nbi
//   -p        the local side of put and get is private (malloc) memory;
//             without it, it lies in the symmetric heap
//   -b HOW    core: PE i runs on core i; none: leave the binding alone
//             (default: core when there are no more PEs than cores)
//   -S        time shmem_init, the first shmem_barrier_all and shmem_finalize,
//             and nothing else
//
// A few seconds: -r 5 -t 1 -o lat,add,flag,barrier. The symmetric heap must hold
// 2 * BYTES + 48 MiB (SHMEM_SYMMETRIC_SIZE=512M does for the default).
//
// Output, on PE 0's stdout: lines that start with '#' are remarks; every other line is one figure,
//
//     name size value unit min max repetitions
//
// where value is the median over the repetitions and min and max are their extremes. Units:
// us = microseconds per operation, MB/s = 10^6 bytes per second, Mop/s = 10^6 operations per
// second. Point-to-point figures are between PE 0 and PE 1; in the one-sided ones PE 1 (like every
// other PE) waits in shmem_barrier_all.
//
//   put_lat          shmem_putmem + shmem_quiet, per pair
//   my_pe            shmem_my_pe: what a call costs that only returns a number
//   put_issue        shmem_putmem, with one shmem_quiet at the end of the loop
//   p_lat, g_lat     shmem_long_p + shmem_quiet;  shmem_long_g
//   get_lat          shmem_getmem
//   amo_*            64-bit atomics on PE 1's memory; non-fetching ones are followed by shmem_quiet
//   amo_*_contended  every PE updates the same word, on PE 0; the slowest PE's time
//   put_bw, get_bw   back-to-back blocking calls (one quiet at the end of put's)
//   put_bw_nbi, ..   windows of at most 64 calls, each closed by shmem_quiet
//   pingpong_flag    shmem_long_p answered by shmem_long_p, received with shmem_long_wait_until;
//                    one way, i.e. half a round trip
//   pingpong_data    shmem_putmem, shmem_fence, shmem_long_p; one way
//   pingpong_signal  shmem_putmem_signal, shmem_signal_wait_until; one way
//   ring             shmem_long_p to the next PE, received with shmem_long_wait_until; once around
//   barrier_all, sync_all   back-to-back calls
//   allreduce_sum    the sum of one 8-byte integer of each PE, back-to-back calls
//   broadcast, reduce_sum_float, alltoall, fcollect
//                    size is what one PE contributes (alltoall: to each PE); each call follows a
//                    barrier and is timed alone; the value is the slowest PE's mean.
//                    clock_cost is included in it.
//   put_rate, get_rate   8-byte nbi calls, a quiet after each 1024
//   bare_*           the same work without the library, on the peer's memory through shmem_ptr:
//                    store, load, C11 atomic fetch-add, memcpy (bare_put_bw, bare_get_bw; with
//                    _movsb, _avx, _nt by the string copy, vectors and vectors past the caches),
//                    and a ping-pong of one cache line (bare_pingpong, bare_one_way; one way). They
//                    are measured in turn with the figures that they bound, repetition by
//                    repetition.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

struct bench bench = {.repetitions = 21, .least_time = 3e-3, .max_bytes = (size_t)64 << 20};

enum binding { kBindIfRoom, kBindCore, kBindNone };

static const struct {
  const char* name;
  void (*run)(void);
} groups[] = {
    {"lat", latency_group},      {"add", add_group},
    {"amo", atomics_group},      {"flag", flag_group},
    {"data", data_group},        {"ring", ring_group},
    {"barrier", barrier_group},  {"allreduce", allreduce_group},
    {"coll", collectives_group}, {"rate", rate_group},
    {"put", put_group},          {"get", get_group},
    {"nbi", nbi_group},
};
enum { kGroups = sizeof groups / sizeof *groups };

// Whether the first `n` characters of a name are a group's.
static int is_group(const char* name, size_t n) {
  for (int i = 0; i < kGroups; i++)
    if (strlen(groups[i].name) == n && !strncmp(groups[i].name, name, n)) return 1;
  return 0;
}

static int unknown_group(const char* list) {
  for (const char* p = list;; p++) {
    size_t n = strcspn(p, ",");
    if (!is_group(p, n)) return 1;
    p += n;
    if (!*p) return 0;
  }
}

// Where both sides of a comparison are bound alike, neither has the better scheduler.
static void bind_to_core(enum binding how) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (how == kBindNone || (how == kBindIfRoom && bench.npes > cores)) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(bench.me % cores, &set);
  if (sched_setaffinity(0, sizeof set, &set))
    printf("# PE %d could not be bound to core %ld\n", bench.me, bench.me % cores);
}

static int time_start_and_end(void) {
  double t0 = now();
  shmem_init();
  double t1 = now();
  bench.me = shmem_my_pe();
  bench.npes = shmem_n_pes();
  shmem_barrier_all();
  double t2 = now();
  shmem_finalize();
  double t3 = now();
  size_t n = (size_t)bench.npes;
  double init = (t1 - t0) * 1e6, barrier = (t2 - t1) * 1e6, finalize = (t3 - t2) * 1e6;
  report("startup_init", n, "us", &init, 1);
  report("startup_barrier", n, "us", &barrier, 1);
  report("startup_finalize", n, "us", &finalize, 1);
  return 0;
}

static void allocate(void) {
  size_t room = bench.max_bytes < kCollectiveMax ? kCollectiveMax : bench.max_bytes;
  bench.source = need(shmem_align(4096, room), "the source");
  bench.destination = need(shmem_align(4096, room), "the destination");
  bench.flag = lone_word();
  bench.word = lone_word();
  bench.answer = lone_word();
  bench.slot = need(shmem_malloc((size_t)bench.npes * sizeof *bench.slot), "slots");
  bench.local = bench.private_local ? need(malloc(room), "private memory") : bench.source;
  memset(bench.source, 0, room);
  memset(bench.destination, 0, room);
  memset(bench.local, 0, room);
  shmem_barrier_all();
}

static void introduce(void) {
  if (bench.me != 0) return;
  char name[SHMEM_MAX_NAME_LEN];
  int major = 0, minor = 0;
  shmem_info_get_name(name);
  shmem_info_get_version(&major, &minor);
  printf("# oshm_bench: %s, OpenSHMEM %d.%d, %d PEs, %d repetitions, local side %s\n", name, major,
         minor, bench.npes, bench.repetitions, bench.private_local ? "private" : "symmetric");
  printf("# name size median unit min max repetitions\n");
  double v[21];
  for (int r = 0; r < 21; r++) {
    double t0 = now();
    for (int i = 0; i < 1000; i++) now();
    v[r] = (now() - t0) * 1e3;  // microseconds per call
  }
  report("clock_cost", 0, "us", v, 21);
}

static int usage(const char* program) {
  fprintf(stderr,
          "usage: %s [-r reps (1..%d)] [-t ms] [-m bytes (at least 8)] [-o group,...] [-p] "
          "[-b core|none] [-S]\n",
          program, kMaxRepetitions);
  return 2;
}

int main(int argc, char** argv) {
  enum binding binding = kBindIfRoom;
  int only_start = 0;
  for (int option; (option = getopt(argc, argv, "r:t:m:o:b:pS")) != -1;) {
    switch (option) {
      case 'r':
        bench.repetitions = atoi(optarg);
        break;
      case 't':
        bench.least_time = atof(optarg) * 1e-3;
        break;
      case 'm':
        bench.max_bytes = strtoull(optarg, NULL, 0);
        break;
      case 'o':
        bench.groups = optarg;
        break;
      case 'b':
        binding = strcmp(optarg, "none") ? kBindCore : kBindNone;
        break;
      case 'p':
        bench.private_local = 1;
        break;
      case 'S':
        only_start = 1;
        break;
      default:
        return usage(argv[0]);
    }
  }
  if (bench.repetitions < 1 || bench.repetitions > kMaxRepetitions || bench.max_bytes < 8 ||
      optind != argc || (bench.groups && unknown_group(bench.groups)))
    return usage(argv[0]);
  if (only_start) return time_start_and_end();

  shmem_init();
  bench.me = shmem_my_pe();
  bench.npes = shmem_n_pes();
  if (bench.npes < 2) {
    fprintf(stderr, "%s: at least 2 PEs\n", argv[0]);
    shmem_global_exit(2);
  }
  bind_to_core(binding);
  allocate();
  bare_setup();
  introduce();
  for (int i = 0; i < kGroups; i++)
    if (wanted(groups[i].name)) groups[i].run();
  shmem_barrier_all();
  shmem_finalize();
  return bench.errors ? 1 : 0;
}
