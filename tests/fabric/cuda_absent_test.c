/* SPDX-License-Identifier: Apache-2.0
 * What is told who chooses the CUDA device where there is no driver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <smem/host/smem_shm.h>

#include "fabric/pools.h"

SCENARIO(the_missing_driver_is_named, 1, int number) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != NULL) {
    fprintf(stderr, "there is a CUDA driver here\n");
    return;
  }
  setenv("MEMSPAN_DEVICE", "cuda", 1);
  begin(number);
  const char* words = "no CUDA driver: libcuda.so.1 cannot be loaded";
  CHECK(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, kSize, 0) == NULL);
  CHECK(strstr(smem_get_last_err_msg(), words) != NULL);
  CHECK(strstr(smem_get_last_err_msg(), "MEMSPAN_DEVICE=cuda") != NULL);
  setenv("MEMSPAN_DEVICE", "host", 1);
  CHECK(smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, kSize, kSize, 0) != NULL);
}
