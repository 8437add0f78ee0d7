/* SPDX-License-Identifier: Apache-2.0
 * MemFabric's headers by themselves, as its documents include them. */
#include <hybm/hybm_def.h>

#include "smem.h"
#include "smem_bm.h"
#include "smem_bm_def.h"
#include "smem_shm.h"
#include "smem_shm_def.h"
#include "smem_trans.h"
#include "smem_trans_def.h"

static int decrypt(const char* cipher, size_t cipher_length, char* plain, size_t* plain_length) {
  (void)cipher;
  (void)cipher_length;
  (void)plain;
  *plain_length = 0;
  return 0;
}

int32_t smem_alone_uses_it(void);
int32_t smem_alone_uses_it(void) {
  int32_t code = smem_init(0) + smem_set_conf_store_tls(false, NULL, 0);
  code += smem_set_config_store_tls_key("", 0, NULL, 0, decrypt);
  smem_uninit();
  return code + (int32_t)(ASYNC_COPY_FLAG | COPY_EXTEND_FLAG) + (int32_t)SMEM_WORLD_SIZE_MAX;
}
