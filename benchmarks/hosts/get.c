// SPDX-License-Identifier: Apache-2.0
// A get of 8 bytes from a PE of another simulated host that sleeps in poll(2): the medians of the
// rounds, of which each is the mean of many gets.
//
//   oshrun [--bind core|none] -n 2 --simulate-hosts 2 hosts_get [rounds [calls]]
#include <poll.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"

static long value = 7;
static long is_done;

static double get_us(int calls) {
  const double start = now_us();
  for (int i = 0; i < calls; i++) {
    long got = 0;
    shmem_long_get(&got, &value, 1, 1);
    if (got != 7) shmem_global_exit(1);
  }
  return (now_us() - start) / calls;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 15;
  const int calls = argc > 2 ? atoi(argv[2]) : 2000;
  if (rounds < 1 || rounds > kMostRounds || calls < 1) {
    fprintf(stderr, "hosts_get: rounds is 1 to %d, calls 1 or more\n", kMostRounds);
    return 2;
  }
  shmem_init();
  const int me = shmem_my_pe();
  if (shmem_n_pes() != 2 || shmem_ptr(&value, 1 - me) != NULL) {
    if (me == 0) fprintf(stderr, "hosts_get: needs 2 PEs on 2 hosts\n");
    shmem_finalize();
    return 2;
  }
  if (me == 0) {
    static double rounds_us[kMostRounds];
    get_us(calls / 10 + 1);
    for (int i = 0; i < rounds; i++) rounds_us[i] = get_us(calls);
    const double middle = median(rounds_us, rounds);
    printf("get of 8 bytes %.2f us (%.2f to %.2f)\n", middle, rounds_us[0], rounds_us[rounds - 1]);
    shmem_long_p(&is_done, 1, 1);
  } else {
    while (shmem_long_atomic_fetch(&is_done, 1) == 0) poll(NULL, 0, 1);
  }
  shmem_finalize();
  return 0;
}
