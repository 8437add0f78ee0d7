/* SPDX-License-Identifier: Apache-2.0
 * sort: a parallel sort of integers. From a sample of all keys come splitters, which give every PE
 * a range of keys; each PE sends every key to the PE whose range it is in, which sorts what it got.
 *
 *   oshrun -n 4 ./sort [keys]
 */
#include "example.h"

#include <limits.h>
#include <string.h>

enum { kSamples = 64 }; /* that each PE gives: more make the ranges more equal */

static long key(long i) {
  return (long)(random_number((uint64_t)i) % 1000000000);
}

static int compare(const void* a, const void* b) {
  long x = *(const long*)a, y = *(const long*)b;
  return (x > y) - (x < y);
}

static void sort_keys(long* keys, long count) {
  qsort(keys, (size_t)count, sizeof *keys, compare);
}

/* The first of the sorted keys that is not below the limit. */
static long lower_bound(const long* keys, long count, long limit) {
  long low = 0, high = count;
  while (low < high) {
    long middle = low + (high - low) / 2;
    if (keys[middle] < limit) low = middle + 1;
    if (keys[middle] >= limit) high = middle;
  }
  return low;
}

/* PE p shall have the keys from splitters[p] up to, and without, splitters[p + 1]. Collective: all
 * PEs give samples of their sorted keys, all get all samples, and come to the same splitters. */
static void choose_splitters(const long* keys, long count, int pes, long* splitters) {
  long* mine = symmetric("sort", shmem_malloc(kSamples * sizeof *mine));
  long* all = symmetric("sort", shmem_malloc(kSamples * sizeof *all * (size_t)pes));
  for (long i = 0; i < kSamples; ++i) mine[i] = count == 0 ? LONG_MAX : keys[i * count / kSamples];
  if (shmem_long_fcollect(SHMEM_TEAM_WORLD, all, mine, kSamples) != 0)
    shmem_global_exit(kExitFailed);
  sort_keys(all, (long)kSamples * pes);
  for (int pe = 0; pe < pes; ++pe) splitters[pe] = all[(long)pe * kSamples];
  splitters[0] = LONG_MIN;
  splitters[pes] = LONG_MAX;
  shmem_free(all);
  shmem_free(mine);
}

/* Sends the sorted keys where they belong. Returns what this PE got, still mixed: symmetric. */
static long* exchange(const long* keys, const long* begins, int pes, long* received) {
  /* How many keys go from whom to whom: row `me` of the table becomes column `me`. */
  long* sent = symmetric("sort", shmem_malloc(sizeof *sent * (size_t)pes));
  long* got = symmetric("sort", shmem_malloc(sizeof *got * (size_t)pes));
  for (int pe = 0; pe < pes; ++pe) sent[pe] = begins[pe + 1] - begins[pe];
  if (shmem_long_alltoall(SHMEM_TEAM_WORLD, got, sent, 1) != 0) shmem_global_exit(kExitFailed);

  /* All PEs allocate as much as the one that gets most: symmetric memory has one size. */
  long* most = symmetric("sort", shmem_calloc(3, sizeof *most));
  for (int pe = 0; pe < pes; ++pe) most[0] += got[pe];
  *received = most[0];
  if (shmem_long_max_reduce(SHMEM_TEAM_WORLD, &most[1], &most[0], 1) != 0)
    shmem_global_exit(kExitFailed);
  long* keys_here = symmetric("sort", shmem_malloc(sizeof *keys_here * (size_t)(most[1] + 1)));

  /* fetch_add on a PE's counter takes a piece of its memory, which nobody else will write to. */
  long* used = &most[2];
  int me = shmem_my_pe();
  for (int i = 0; i < pes; ++i) {
    int pe = (me + i) % pes; /* not all to PE 0 first */
    if (sent[pe] == 0) continue;
    long place = shmem_long_atomic_fetch_add(used, sent[pe], pe);
    shmem_long_put_nbi(&keys_here[place], &keys[begins[pe]], (size_t)sent[pe], pe);
  }
  shmem_barrier_all(); /* completes the puts of all PEs */
  shmem_free(most);
  shmem_free(got);
  shmem_free(sent);
  return keys_here;
}

/* Makes all keys once more, sorts those of this PE's range alone, and compares one by one. */
static long count_wrong(const long* keys, long count, long total, Range range) {
  long expected_count = 0, wrong = 0;
  for (long i = 0; i < total; ++i) expected_count += key(i) >= range.first && key(i) < range.end;
  if (expected_count != count) return labs(expected_count - count);
  long* expected = local("sort", malloc(sizeof *expected * (size_t)(count + 1)));
  for (long i = 0, at = 0; i < total; ++i)
    if (key(i) >= range.first && key(i) < range.end) expected[at++] = key(i);
  sort_keys(expected, count);
  for (long i = 0; i < count; ++i) wrong += keys[i] != expected[i];
  free(expected);
  return wrong;
}

int main(int argc, char** argv) {
  shmem_init();
  Argument total = {"keys", 1, 10000000000, 1000000};
  read_arguments("sort", argc, argv, &total, 1);
  int me = shmem_my_pe(), pes = shmem_n_pes();

  Range mine = share(total.value, pes, me);
  long count = mine.end - mine.first;
  size_t room = (size_t)(total.value / pes + 1); /* the same on all PEs */
  long* keys = symmetric("sort", shmem_malloc(sizeof *keys * room));
  for (long i = 0; i < count; ++i) keys[i] = key(mine.first + i);
  long* splitters = local("sort", malloc(sizeof *splitters * (size_t)(pes + 1)));
  long* begins = local("sort", malloc(sizeof *begins * (size_t)(pes + 1)));

  shmem_barrier_all();
  double start = seconds_now();
  sort_keys(keys, count);
  choose_splitters(keys, count, pes, splitters);
  for (int pe = 0; pe <= pes; ++pe) begins[pe] = lower_bound(keys, count, splitters[pe]);
  long received;
  long* sorted = exchange(keys, begins, pes, &received);
  sort_keys(sorted, received);
  shmem_barrier_all();
  double seconds = seconds_now() - start;

  long wrong =
      count_wrong(sorted, received, total.value, (Range){splitters[me], splitters[me + 1]});
  shmem_free(sorted);
  free(begins);
  free(splitters);
  shmem_free(keys);
  return finish("sort", seconds, wrong, "%ld keys", total.value);
}
