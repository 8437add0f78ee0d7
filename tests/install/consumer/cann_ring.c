/* SPDX-License-Identifier: Apache-2.0
 * ring.c by CANN SHMEM's names of version 1.5. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  const int me = atoi(getenv("RANK")), peers = atoi(getenv("WORLD_SIZE"));
  aclshmemx_init_attr_t attributes = {.my_pe = me, .n_pes = peers, .local_mem_size = 1 << 20};
  attributes.option_attr.data_op_engine_type = ACLSHMEM_DATA_OP_MTE;
  attributes.option_attr.shm_init_timeout = DEFAULT_TIMEOUT;
  attributes.option_attr.shm_create_timeout = DEFAULT_TIMEOUT;
  attributes.option_attr.control_operation_timeout = DEFAULT_TIMEOUT;
  strcpy(attributes.ip_port, "tcp://127.0.0.1:8669");
  if (aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) != ACLSHMEM_SUCCESS) return 1;
  int32_t* from = (int32_t*)aclshmem_malloc(sizeof *from);
  *from = -1;
  aclshmem_barrier_all();
  aclshmem_int32_p(from, me, (me + 1) % peers);
  aclshmem_barrier_all();
  const int right = *from == (me + peers - 1) % peers;
  if (right) printf("PE %d of %d got %d\n", me, peers, (int)*from);
  aclshmem_free(from);
  return aclshmem_finalize() == ACLSHMEM_SUCCESS && right ? 0 : 1;
}
