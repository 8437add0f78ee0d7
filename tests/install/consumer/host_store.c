/* SPDX-License-Identifier: Apache-2.0
 * A program as MemFabric's documents build it: the headers by their names alone. */
#include <smem.h>
#include <smem_bm.h>
#include <smem_shm.h>
#include <smem_trans.h>
#include <stdio.h>

int main(void) {
  char url[64];
  /* The first port that is free. */
  for (int port = 20000; port < 21000; ++port) {
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
    if (smem_create_config_store(url) != SMEM_OK) continue;
    printf("hosts a store\n");
    return smem_destroy_config_store(url) == SMEM_OK ? 0 : 1;
  }
  printf("%s\n", smem_get_last_err_msg());
  return 1;
}
