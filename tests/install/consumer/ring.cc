// SPDX-License-Identifier: Apache-2.0
// A user's program in C++: each process puts its number to the next one.
#include <shmem.h>

#include <cstdio>

int main() {
  shmem_init();
  const int me = shmem_my_pe();
  const int peers = shmem_n_pes();
  auto* from = static_cast<long*>(shmem_malloc(sizeof(long)));
  *from = -1;
  shmem_barrier_all();
  shmem_long_p(from, me, (me + 1) % peers);
  shmem_barrier_all();
  const bool is_right = *from == (me + peers - 1) % peers;
  if (is_right) std::printf("PE %d of %d got %ld\n", me, peers, *from);
  shmem_free(from);
  shmem_finalize();
  return is_right ? 0 : 1;
}
