// SPDX-License-Identifier: Apache-2.0
#include <hybm/hybm_def.h>
#include <memspan/group.h>
#include <memspan/pool.h>
#include <memspan/stream.h>
#include <memspan/transfer.h>

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

// With and without flags.
int trans_in_cxx_uses_it(smem_trans_t endpoint, memspan_stream_t stream);
int trans_in_cxx_uses_it(smem_trans_t endpoint, memspan_stream_t stream) {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  int code = smem_trans_write(endpoint, from, "", to, 0) +
             smem_trans_write(endpoint, from, "", to, 0, 0) +
             smem_trans_read(endpoint, to, "", from, 0) +
             smem_trans_read(endpoint, to, "", from, 0, COPY_EXTEND_FLAG);
  code += smem_trans_batch_write(endpoint, &from, "", &to, &bytes, 1) +
          smem_trans_batch_write(endpoint, &from, "", &to, &bytes, 1, 0) +
          smem_trans_batch_read(endpoint, &to, "", &from, &bytes, 1) +
          smem_trans_batch_read(endpoint, &to, "", &from, &bytes, 1, 0);
  code += smem_trans_write_submit(endpoint, from, "", to, 0, stream) +
          smem_trans_write_submit(endpoint, from, "", to, 0, stream, 0) +
          smem_trans_read_submit(endpoint, to, "", from, 0, stream) +
          smem_trans_read_submit(endpoint, to, "", from, 0, stream, 0);
  code += smem_trans_batch_write_submit(endpoint, &from, "", &to, &bytes, 1, stream) +
          smem_trans_batch_write_submit(endpoint, &from, "", &to, &bytes, 1, stream, 0) +
          smem_trans_batch_read_submit(endpoint, &to, "", &from, &bytes, 1, stream) +
          smem_trans_batch_read_submit(endpoint, &to, "", &from, &bytes, 1, stream, 0);
  return code + memspan_transfer_post(nullptr);
}
