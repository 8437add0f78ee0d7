/* SPDX-License-Identifier: Apache-2.0
 * A user's program: each process puts its number to the next one. Compiles as C and as C++. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), peers = shmem_n_pes();
  long* from = (long*)shmem_malloc(sizeof(long));
  *from = -1;
  shmem_barrier_all();
  shmem_long_p(from, me, (me + 1) % peers);
  shmem_barrier_all();
  const int right = *from == (me + peers - 1) % peers;
  if (right) printf("PE %d of %d got %ld\n", me, peers, *from);
  shmem_free(from);
  shmem_finalize();
  return right ? 0 : 1;
}
