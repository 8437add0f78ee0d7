// SPDX-License-Identifier: Apache-2.0
// Calls each function of the data path as often as its argument says, on the PE itself: what has to
// be done to find the peer and to check the address is the same for every mapped peer.
// instructions.py counts.
#include <shmem.h>
#include <stdint.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 1;
  shmem_init();
  long* there = shmem_calloc(8, sizeof *there);
  uint64_t* signal = shmem_calloc(1, sizeof *signal);
  long here[8] = {0};
  for (int i = 0; i < calls; i++) {
    shmem_long_p(there, i, 0);
    here[0] += shmem_long_g(there, 0);
    shmem_long_put(there, here, 1, 0);
    shmem_long_get(here, there, 1, 0);
    shmem_putmem_nbi(there, here, 8, 0);
    shmem_putmem_signal(there, here, 8, signal, 1, SHMEM_SIGNAL_SET, 0);
    shmem_long_atomic_inc(there, 0);
    here[1] += shmem_long_atomic_fetch_add(there, 1, 0);
    here[1] += shmem_long_atomic_fetch(there, 0);
    here[1] += shmem_long_test(there, SHMEM_CMP_NE, 0);
    shmem_fence();
    shmem_quiet();
  }
  shmem_finalize();
  return 0;
}
