/* SPDX-License-Identifier: Apache-2.0
 * histogram: random numbers are counted by bucket. The buckets are dealt out to the PEs like cards,
 * and whoever meets a number increments its bucket where it is, with an atomic: increments by many
 * PEs at once all count.
 *
 *   oshrun -n 4 ./histogram [samples [buckets]]
 */
#include "example.h"

enum { kMostBuckets = 1 << 16 };

/* Bucket b is counts[b / pes] of PE b % pes. A static array is symmetric, like shmem_malloc's
 * memory; it has room for the case that one PE has all buckets. */
static long counts[kMostBuckets];

/* The sample's bucket. Small ones are more frequent, so PEs do meet. */
static long bucket_of(long sample, long buckets) {
  uint64_t a = random_number(2 * (uint64_t)sample) >> 32;
  uint64_t b = random_number(2 * (uint64_t)sample + 1) >> 32;
  uint64_t skewed = (a * b) >> 32; /* a product of two numbers below 1, as 32 bits */
  return (long)((skewed * (uint64_t)buckets) >> 32);
}

static void count(Range samples, long buckets, int pes) {
  for (long sample = samples.first; sample < samples.end; ++sample) {
    long bucket = bucket_of(sample, buckets);
    shmem_long_atomic_inc(&counts[bucket / pes], (int)(bucket % pes));
  }
}

/* Counts all samples once more, alone, and compares the buckets that are here. */
static long count_wrong(long samples, long buckets, int me, int pes) {
  long* expected = local("histogram", calloc((size_t)buckets, sizeof *expected));
  for (long sample = 0; sample < samples; ++sample) ++expected[bucket_of(sample, buckets)];
  long wrong = 0;
  for (long bucket = me; bucket < buckets; bucket += pes)
    wrong += counts[bucket / pes] != expected[bucket];
  free(expected);
  return wrong;
}

int main(int argc, char** argv) {
  shmem_init();
  enum { kSamples, kBuckets, kArguments };
  Argument arguments[kArguments] = {{"samples", 1, 1000000000, 1000000},
                                    {"buckets", 1, kMostBuckets, 1000}};
  read_arguments("histogram", argc, argv, arguments, kArguments);
  long samples = arguments[kSamples].value, buckets = arguments[kBuckets].value;
  int me = shmem_my_pe(), pes = shmem_n_pes();

  shmem_barrier_all();
  double start = seconds_now();
  count(share(samples, pes, me), buckets, pes);
  shmem_barrier_all(); /* all increments of all PEs are in the buckets after it */
  double seconds = seconds_now() - start;

  long wrong = count_wrong(samples, buckets, me, pes);
  return finish("histogram", seconds, wrong, "%ld samples, %ld buckets", samples, buckets);
}
