// SPDX-License-Identifier: Apache-2.0
// Prints for each kind of call the nanoseconds of one, the least of some rounds; counters.py runs
// it with counters and without. `put_rate CALLS ROUNDS`.
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static long* there;
static uint64_t* signals;
static long here[8];

static void store_one(int i) {
  shmem_long_p(there, i, 0);
}
static void put(int i) {
  (void)i, shmem_putmem(there, here, 8, 0);
}
static void get(int i) {
  (void)i, shmem_getmem(here, there, 8, 0);
}
static void add(int i) {
  shmem_long_atomic_add(there, i, 0);
}
static void put_signal(int i) {
  shmem_putmem_signal(there, here, 8, signals, (uint64_t)i, SHMEM_SIGNAL_SET, 0);
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 100000;
  const int rounds = argc > 2 ? atoi(argv[2]) : 50;
  const struct {
    const char* name;
    void (*call)(int);
  } kinds[] = {
      {"p", store_one}, {"put", put}, {"get", get}, {"atomic", add}, {"put_signal", put_signal}};
  shmem_init();
  there = shmem_calloc(8, sizeof *there);
  signals = shmem_calloc(1, sizeof *signals);
  for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
    double least = 1e30;
    for (int round = 0; round < rounds; round++) {
      const double begin = now();
      for (int i = 0; i < calls; i++) kinds[kind].call(i);
      const double each = (now() - begin) / calls;
      if (each < least) least = each;
    }
    printf("%s %.3f\n", kinds[kind].name, least);
  }
  shmem_finalize();
  return 0;
}
