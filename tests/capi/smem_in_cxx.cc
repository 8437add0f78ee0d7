// SPDX-License-Identifier: Apache-2.0
#include <memspan/stream.h>

#include "smem.h"
#include "smem_bm.h"
#include "smem_bm_def.h"
#include "smem_shm.h"
#include "smem_shm_def.h"
#include "smem_trans.h"
#include "smem_trans_def.h"

// The handler takes a reference, as the original's does.
static int decrypt(const char*, size_t, char*, size_t& plain_length) {
  plain_length = 0;
  return 0;
}

int smem_in_cxx_uses_it();
int smem_in_cxx_uses_it() {
  return smem_set_config_store_tls_key("", 0, nullptr, 0, decrypt) + smem_init(0);
}

int stream_in_cxx_uses_it();
int stream_in_cxx_uses_it() {
  memspan_stream_t stream = nullptr;
  return memspan_stream_create(&stream) + memspan_stream_query(stream);
}
