// SPDX-License-Identifier: Apache-2.0
// A histogram by atomic adds to all PEs, in which each PE also fetches words of its own, and waits
// for nothing: what is done for programs that poll must cost this one nothing.
//
//   histogram ADDS HOW
//     scan      one fetch of the next own bucket for each add
//     count     one fetch of an own counter, which each step raises
//     constant  one fetch of an own word that never changes
//
// Prints the seconds of the slowest PE. Exits with 1 when an add was lost.
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBuckets = 4096 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t next(uint64_t* state) {  // xorshift
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

typedef enum { kScan, kCount, kConstant } How;

static double histogram(How how, long adds, uint64_t* buckets, uint64_t* word, uint64_t* seen) {
  const int me = shmem_my_pe();
  const uint64_t peers = (uint64_t)shmem_n_pes();
  uint64_t random = 88172645463325252u + (uint64_t)me;
  shmem_barrier_all();
  const double begin = seconds();
  for (long i = 0; i < adds; i++) {
    const uint64_t draw = next(&random) >> 8;
    shmem_uint64_atomic_inc(&buckets[draw / peers % kBuckets], (int)(draw % peers));
    if (how == kScan) *seen += shmem_uint64_atomic_fetch(&buckets[i % kBuckets], me);
    if (how != kScan) *seen += shmem_uint64_atomic_fetch(word, me);
    if (how == kCount) shmem_uint64_atomic_inc(word, me);
  }
  shmem_barrier_all();
  return seconds() - begin;
}

int main(int argc, char** argv) {
  const long adds = argc > 1 ? atol(argv[1]) : 100000;
  const char* name = argc > 2 ? argv[2] : "scan";
  const int how = strcmp(name, "scan") == 0       ? kScan
                  : strcmp(name, "count") == 0    ? kCount
                  : strcmp(name, "constant") == 0 ? kConstant
                                                  : -1;
  if (how < 0 || adds < 1) {
    fprintf(stderr, "usage: histogram ADDS scan|count|constant\n");
    return 2;
  }
  shmem_init();
  uint64_t* buckets = shmem_calloc(kBuckets, sizeof *buckets);
  uint64_t* word = shmem_calloc(1, sizeof *word);
  double* took = shmem_calloc(2, sizeof *took);
  uint64_t* sums = shmem_calloc(2, sizeof *sums);
  uint64_t seen = 0;
  took[0] = histogram((How)how, adds, buckets, word, &seen);
  for (int i = 0; i < kBuckets; i++) sums[0] += buckets[i];
  shmem_double_max_reduce(SHMEM_TEAM_WORLD, &took[1], took, 1);
  shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, &sums[1], sums, 1);
  const uint64_t all = (uint64_t)adds * (uint64_t)shmem_n_pes();
  const int is_wrong =
      sums[1] != all || (how == kCount && seen != (uint64_t)adds * (uint64_t)(adds - 1) / 2);
  if (shmem_my_pe() == 0) {
    printf("histogram, %s: %.6f s\n", name, took[1]);
    if (is_wrong)
      fprintf(stderr, "histogram: %llu adds became %llu\n", (unsigned long long)all,
              (unsigned long long)sums[1]);
  }
  shmem_finalize();
  return is_wrong;
}
