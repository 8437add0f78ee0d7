/* SPDX-License-Identifier: Apache-2.0
 * A program of old: static variables, locks and active sets only, linked in each way that there is
 * (as a position-independent executable or at a fixed place, with lazy or immediate binding). */
#include <mpp/shmem.h>
#include <stdio.h>

#include "support/check.h"

static long sync_words[_SHMEM_REDUCE_SYNC_SIZE] = {_SHMEM_SYNC_VALUE};
static long lock;
static long counter = 7;
static long sum;
static char large[3 << 20];

int main(void) {
  int i, pe, pes;
  start_pes(0);
  pe = _my_pe();
  pes = _num_pes();
  /* In no library's way: what stdio keeps for itself stands in the program too. */
  if (fprintf(stderr, "%s", "") != 0) return 1;
  shmem_barrier_all();
  for (i = 0; i < 10; ++i) {
    shmem_set_lock(&lock);
    shmem_long_p(&counter, shmem_long_g(&counter, 0) + 1, 0);
    shmem_clear_lock(&lock);
  }
  shmem_putmem(large + pe, "x", 1, 0);
  shmem_barrier(0, 0, pes, sync_words);
  if (pe == 0) {
    CHECK(counter == 7 + 10L * pes);
    for (i = 0; i < pes; ++i) CHECK(large[i] == 'x');
  } else {
    CHECK(counter == 7);
  }
  shmem_long_sum_to_all(&sum, &counter, 1, 0, 0, pes, NULL, sync_words);
  CHECK(sum == 7L * pes + 10L * pes);
  return 0;
}
