/* SPDX-License-Identifier: Apache-2.0
 * ring.c by aclshmem's names. */
#include <shmem_api.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  shmem_init_attr_t* attributes = NULL;
  const int me = atoi(getenv("RANK")), peers = atoi(getenv("WORLD_SIZE"));
  if (shmem_set_attr(me, peers, 1 << 20, "tcp://127.0.0.1:8668", &attributes) != 0) return 1;
  if (shmem_init_attr(attributes) != 0) return 1;
  int32_t* from = (int32_t*)shmem_malloc(sizeof *from);
  *from = -1;
  shmem_barrier_all();
  shmem_int32_p(from, me, (me + 1) % peers);
  shmem_barrier_all();
  const int right = *from == (me + peers - 1) % peers;
  if (right) printf("PE %d of %d got %d\n", me, peers, (int)*from);
  shmem_free(from);
  return shmem_finalize() == 0 && right ? 0 : 1;
}
