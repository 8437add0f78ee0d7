// SPDX-License-Identifier: Apache-2.0
// Collectives, through teams (OpenSHMEM 1.5) or through active sets (1.4).
#include <stdio.h>
#include <string.h>

#include "bench.h"

static char *source, *destination;                 // symmetric, npes * kCollectiveMax each
static long *allreduce_source, *allreduce_result;  // symmetric

#if BENCH_TEAMS

static void setup_sync(void) {}

static void call_allreduce(void) {
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, allreduce_result, allreduce_source, 1);
}
static void call_broadcast(size_t size) {
  shmem_broadcastmem(SHMEM_TEAM_WORLD, destination, source, size, 0);
}
static void call_reduce(size_t size) {
  shmem_float_sum_reduce(SHMEM_TEAM_WORLD, (float*)destination, (float*)source,
                         size / sizeof(float));
}
static void call_alltoall(size_t size) {
  shmem_alltoallmem(SHMEM_TEAM_WORLD, destination, source, size);
}
static void call_fcollect(size_t size) {
  shmem_fcollectmem(SHMEM_TEAM_WORLD, destination, source, size);
}

#else

static long *sync_broadcast, *sync_reduce, *sync_alltoall, *sync_collect;
static float* work;
// Two sets for back-to-back calls: when a PE leaves call k+1, every PE has left call k.
static long* sync_allreduce[2];
static long* work_allreduce[2];
static long allreduce_calls;  // the same at every PE

static long* sync_array(size_t n) {
  long* array = need(shmem_malloc(n * sizeof *array), "a pSync array");
  for (size_t i = 0; i < n; i++) array[i] = SHMEM_SYNC_VALUE;
  return array;
}

static void setup_sync(void) {
  size_t n = kCollectiveMax / sizeof(float) / 2 + 1;
  if (sync_broadcast) return;
  sync_broadcast = sync_array(SHMEM_BCAST_SYNC_SIZE);
  sync_reduce = sync_array(SHMEM_REDUCE_SYNC_SIZE);
  sync_alltoall = sync_array(SHMEM_ALLTOALL_SYNC_SIZE);
  sync_collect = sync_array(SHMEM_COLLECT_SYNC_SIZE);
  if (n < SHMEM_REDUCE_MIN_WRKDATA_SIZE) n = SHMEM_REDUCE_MIN_WRKDATA_SIZE;
  work = need(shmem_malloc(n * sizeof *work), "work data");
  for (int i = 0; i < 2; i++) {
    sync_allreduce[i] = sync_array(SHMEM_REDUCE_SYNC_SIZE);
    work_allreduce[i] =
        need(shmem_malloc((1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE) * sizeof(long)), "work data");
  }
}

static void call_allreduce(void) {
  int turn = (int)(allreduce_calls++ & 1);
  shmem_long_sum_to_all(allreduce_result, allreduce_source, 1, 0, 0, bench.npes,
                        work_allreduce[turn], sync_allreduce[turn]);
}
static void call_broadcast(size_t size) {
  shmem_broadcast64(destination, source, size / 8, 0, 0, 0, bench.npes, sync_broadcast);
}
static void call_reduce(size_t size) {
  shmem_float_sum_to_all((float*)destination, (float*)source, (int)(size / sizeof(float)), 0, 0,
                         bench.npes, work, sync_reduce);
}
static void call_alltoall(size_t size) {
  shmem_alltoall64(destination, source, size / 8, 0, 0, bench.npes, sync_alltoall);
}
static void call_fcollect(size_t size) {
  shmem_fcollect64(destination, source, size / 8, 0, 0, bench.npes, sync_collect);
}

#endif

static void allreduce(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) call_allreduce();
}

void allreduce_group(void) {
  static const struct figure figure = {"allreduce_sum", 8, kLatency, allreduce, 0};
  if (!allreduce_source) {
    allreduce_source = lone_word();
    allreduce_result = lone_word();
  }
  setup_sync();
  *allreduce_source = bench.me + 1;
  shmem_barrier_all();
  measure_together(&figure, 1);
  long sum = (long)bench.npes * (bench.npes + 1) / 2;
  if (*allreduce_result != sum) {
    printf("# ERROR allreduce_sum: %ld at PE %d, not %ld\n", *allreduce_result, bench.me, sum);
    bench.errors++;
  }
}

typedef void (*collective)(size_t size);

// The slowest PE's mean of n calls, each after a barrier and timed alone.
static double mean_of(collective call, size_t size, long n) {
  double sum = 0;
  for (long i = 0; i < n; i++) {
    shmem_barrier_all();
    double start = now();
    call(size);
    sum += now() - start;
  }
  return slowest(sum / (double)n);
}

static void measure_collective(const char* name, size_t size, collective call) {
  static double samples[kMaxRepetitions];
  mean_of(call, size, 10);
  double once = mean_of(call, size, 10);
  long n = once > 0 ? (long)(bench.least_time / once) : 1000;
  n = agree(n < 2 ? 2 : n > 5000 ? 5000 : n);
  for (int r = 0; r < bench.repetitions; r++) samples[r] = mean_of(call, size, n) * 1e6;
  report(name, size, "us", samples, bench.repetitions);
}

void collectives_group(void) {
  static const size_t sizes[] = {8, 4096, kCollectiveMax};
  size_t room = (size_t)bench.npes * kCollectiveMax;
  source = need(shmem_align(4096, room), "collectives");
  destination = need(shmem_align(4096, room), "collectives");
  memset(source, 0, room);
  memset(destination, 0, room);
  setup_sync();
  shmem_barrier_all();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    measure_collective("broadcast", sizes[i], call_broadcast);
    measure_collective("reduce_sum_float", sizes[i], call_reduce);
    measure_collective("alltoall", sizes[i], call_alltoall);
    measure_collective("fcollect", sizes[i], call_fcollect);
  }
}
