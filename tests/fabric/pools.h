/* SPDX-License-Identifier: Apache-2.0
 * Pools of the tests of Big Memory. */
#ifndef MEMSPAN_TESTS_FABRIC_POOLS_H
#define MEMSPAN_TESTS_FABRIC_POOLS_H

#include <smem/host/smem_bm.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/smem_test.h"

static inline smem_bm_config_t config(int number) {
  smem_bm_config_t made;
  smem_bm_config_init(&made);
  made.startConfigStoreServer = false;
  made.initTimeout = made.createTimeout = 20;
  made.controlOperationTimeout = 10;
  if (number >= 0) {
    made.autoRanking = false;
    made.rankId = (uint16_t)number;
  }
  return made;
}

static inline void begin(int number) {
  const smem_bm_config_t made = config(number);
  CHECK(smem_bm_init(page->url, (uint32_t)members, 0, &made) == SMEM_OK);
}

/* A pool of the same size everywhere, joined. */
static inline smem_bm_t plain_pool(uint32_t id, uint64_t dram, uint64_t device) {
  smem_bm_t pool = smem_bm_create(id, 0, SMEMB_DATA_OP_SDMA, dram, device, 0);
  if (pool == NULL || smem_bm_join(pool, 0, NULL) != SMEM_OK)
    fprintf(stderr, "pool %u: %s\n", id, smem_get_last_err_msg());
  return pool;
}

static inline char* host_of(smem_bm_t pool, int rank) {
  return smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, (uint16_t)rank);
}
static inline char* device_of(smem_bm_t pool, int rank) {
  return smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_DEVICE, (uint16_t)rank);
}

static inline int32_t copy(smem_bm_t pool, const void* from, void* to, size_t bytes,
                           smem_bm_copy_type type, uint32_t flags) {
  smem_copy_params params = {from, to, bytes};
  return smem_bm_copy(pool, &params, type, flags);
}

/* Plain loads and stores reach another rank's memory: not where the ranks are on several hosts, and
 * not a GPU's. */
static inline int is_plain(void) {
  return getenv("MEMSPAN_TEST_HOSTS") == NULL && getenv("MEMSPAN_DEVICE") == NULL;
}
/* Puts bytes at an address of the pool, or takes them from there: by stores and loads where these
 * reach, else by a copy. */
static inline void store_bytes(smem_bm_t pool, char* to, const char* from, size_t bytes) {
  if (is_plain())
    memcpy(to, from, bytes);
  else
    CHECK(copy(pool, from, to, bytes, SMEMB_COPY_H2G, 0) == SMEM_OK);
}
static inline void load_bytes(smem_bm_t pool, char* to, const char* from, size_t bytes) {
  if (is_plain())
    memcpy(to, from, bytes);
  else
    CHECK(copy(pool, from, to, bytes, SMEMB_COPY_G2H, 0) == SMEM_OK);
}
static inline char load_byte(smem_bm_t pool, const char* from) {
  char byte;
  load_bytes(pool, &byte, from, 1);
  return byte;
}

#endif
