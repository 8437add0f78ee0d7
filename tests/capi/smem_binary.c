/* SPDX-License-Identifier: Apache-2.0
 * Programs that load the library by name and call its symbols as their own headers say, of either
 * generation: two arguments or three for a join, with or without flags behind a transfer. Gets the
 * library's path. */
#include <smem/host/smem_bm_def.h>
#include <smem/host/smem_trans_def.h>
#include <string.h>

#include "loaded.h"
#include "support/free_url.h"

typedef int32_t (*config_init)(smem_bm_config_t*);
typedef int32_t (*init)(const char*, uint32_t, uint16_t, const smem_bm_config_t*);
typedef smem_bm_t (*create)(uint32_t, const smem_bm_create_option_t*);
typedef int32_t (*join)(smem_bm_t, uint32_t);
typedef void* (*pointer)(smem_bm_t, smem_bm_mem_type, uint16_t);
typedef int32_t (*copy)(smem_bm_t, smem_copy_params*, smem_bm_copy_type, uint32_t);
typedef int32_t (*wait_for)(smem_bm_t);
typedef void (*uninit)(uint32_t);

/* As a cache of blocks does that finds everything by name. */
static void check_pool(const char* url) {
  FIND(config_init, smem_bm_config_init);
  FIND(init, smem_bm_init);
  FIND(create, smem_bm_create2);
  FIND(join, smem_bm_join);
  FIND(pointer, smem_bm_ptr_by_mem_type);
  FIND(copy, smem_bm_copy);
  FIND(wait_for, smem_bm_wait);
  FIND(uninit, smem_bm_uninit);
  smem_bm_config_t config;
  CHECK(smem_bm_config_init(&config) == 0);
  CHECK(smem_bm_init(url, 1, 0, &config) == 0);
  smem_bm_create_option_t option;
  memset(&option, 0, sizeof option);
  option.maxDramSize = option.localDRAMSize = 1 << 20;
  option.dataOpType = SMEMB_DATA_OP_HOST_RDMA;
  smem_bm_t pool = smem_bm_create2(0, &option);
  CHECK(pool != NULL);
  /* What stands in the third register must not be taken for an address. */
  ((int32_t(*)(smem_bm_t, uint32_t, uint64_t))smem_bm_join)(pool, 0, 1);
  CHECK(smem_bm_join(pool, 0) == 0);
  char* place = smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, 0);
  char text[] = "by name";
  smem_copy_params params = {text, place + 10, sizeof text};
  CHECK(smem_bm_copy(pool, &params, SMEMB_COPY_H2G, 1) == 0);
  CHECK(smem_bm_wait(pool) == 0);
  CHECK(strcmp(place + 10, text) == 0);
  smem_bm_uninit(0);
}

typedef int32_t (*trans_config_init)(smem_trans_config_t*);
typedef int32_t (*trans_init)(const smem_trans_config_t*);
typedef smem_trans_t (*trans_create)(const char*, const char*, const smem_trans_config_t*);
typedef int32_t (*register_mem)(smem_trans_t, void*, size_t, uint32_t);
typedef int32_t (*write_old)(smem_trans_t, const void*, const char*, void*, size_t);
typedef int32_t (*write_new)(smem_trans_t, const void*, const char*, void*, size_t, uint32_t);
typedef void (*trans_destroy)(smem_trans_t, uint32_t);

static void check_transfers(const char* url) {
  FIND(trans_config_init, smem_trans_config_init);
  FIND(trans_init, smem_trans_init);
  FIND(trans_create, smem_trans_create);
  FIND(register_mem, smem_trans_register_mem);
  FIND(write_old, smem_trans_write);
  FIND(trans_destroy, smem_trans_destroy);
  smem_trans_config_t config;
  CHECK(smem_trans_config_init(&config) == 0);
  config.role = SMEM_TRANS_BOTH;
  config.startConfigServer = true; /* the pool's store has ended with its last user */
  CHECK(smem_trans_init(&config) == 0);
  smem_trans_t one = smem_trans_create(url, "127.0.0.1:10000", &config);
  smem_trans_t other = smem_trans_create(url, "127.0.0.1:10001", &config);
  CHECK(one != NULL && other != NULL);
  char from[] = "either generation", to[sizeof from] = "";
  CHECK(smem_trans_register_mem(other, to, sizeof to, 0) == 0);
  CHECK(smem_trans_write(one, from, "127.0.0.1:10001", to, sizeof from) == 0);
  CHECK(strcmp(from, to) == 0);
  memset(to, 0, sizeof to);
  /* Flags that nobody set are whatever the caller's register had. */
  CHECK(((write_new)smem_trans_write)(one, from, "127.0.0.1:10001", to, sizeof from, 0xdeadbeef) ==
        0);
  CHECK(strcmp(from, to) == 0);
  smem_trans_destroy(one, 0);
  smem_trans_destroy(other, 0);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  char url[64];
  CHECK(write_free_url(url, sizeof url));
  check_pool(url);
  check_transfers(url);
  return 0;
}
