/* SPDX-License-Identifier: Apache-2.0
 * The early CANN names in a job of one: what is refused and how, start by attributes, teams. */
#include <memspan/memspan.h>
#include <shmem_api.h>
#include <string.h>

#include "support/check.h"

static int lines;

static void count_line(int level, const char* line) {
  (void)level;
  lines += strlen(line) > 0;
}

static void check_what_is_refused(void) {
  shmem_init_attr_t* attributes = NULL;
  CHECK(shmem_set_attr(-1, 1, 1024, NULL, &attributes) == SHMEM_INVALID_VALUE &&
        attributes == NULL);
  CHECK(strstr(memspan_last_error(), "my_rank is -1") != NULL);
  CHECK(shmem_set_attr(0, 0, 1024, NULL, &attributes) == SHMEM_INVALID_VALUE);
  CHECK(shmem_set_attr(0, 16385, 1024, NULL, &attributes) == SHMEM_INVALID_VALUE);
  CHECK(shmem_set_attr(2, 2, 1024, NULL, &attributes) == SHMEM_INVALID_PARAM);
  CHECK(shmem_set_attr(0, 1, 0, NULL, &attributes) == SHMEM_INVALID_VALUE);
  CHECK(shmem_set_attr(0, 1, 1024, NULL, NULL) == SHMEM_INVALID_PARAM);
  CHECK(shmem_set_attr(0, 2, 1 << 20, "nowhere", &attributes) == SHMEM_SUCCESS);
  CHECK(shmem_init_attr(attributes) == SHMEM_INVALID_PARAM &&
        strstr(memspan_last_error(), "nowhere") != NULL);
  CHECK(shmem_set_timeout(attributes, 0) == SHMEM_SUCCESS &&
        shmem_init_attr(attributes) == SHMEM_INVALID_VALUE);
  CHECK(shmem_set_timeout(attributes, 5) == SHMEM_SUCCESS);
  CHECK(shmem_set_data_op_engine_type(attributes, (data_op_engine_type_t)16) == SHMEM_SUCCESS);
  CHECK(shmem_init_attr(attributes) == SHMEM_INVALID_VALUE &&
        shmem_init_attr(NULL) == SHMEM_INVALID_PARAM);
  CHECK(shmem_set_conf_store_tls(true, NULL, 0) == SHMEM_INVALID_PARAM);
  CHECK(shmem_set_conf_store_tls(true, "tlsCart: a", 10) == SHMEM_INVALID_PARAM &&
        strstr(memspan_last_error(), "tlsCart") != NULL);
  CHECK(shmem_set_conf_store_tls(false, NULL, 0) == SHMEM_SUCCESS);
  CHECK(shmem_register_decrypt_handler(NULL) == SHMEM_SUCCESS);
  CHECK(shmem_set_config_store_tls_key(NULL, 0, NULL, 0, NULL) == SHMEM_INVALID_PARAM);
  CHECK(shmem_set_log_level(5) != SHMEM_SUCCESS && shmem_set_log_level(-1) != SHMEM_SUCCESS);
  CHECK(shmem_malloc(8) == NULL && shmem_my_pe() == -1 && shmem_team_n_pes(SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_init_status() == SHMEM_STATUS_NOT_INITIALIZED && shmem_finalize() == SHMEM_SUCCESS);
}

static void check_typed(void) {
  int64_t from[3] = {1, -2, 3}, to[3] = {0, 0, 0}, *there = shmem_calloc(3, sizeof(int64_t));
  int32_t* signal = shmem_calloc(1, sizeof(int32_t));
  shmem_put_int64_mem(there, from, 3, 0);
  shmem_get_int64_mem_nbi(to, there, 3, 0);
  CHECK(to[1] == -2 && shmem_int64_g(&there[2], 0) == 3);
  shmem_int64_p(&there[2], 4, 0);
  CHECK(there[2] == 4);
  shmem_put_int64_mem_signal(there, from, 3, (uint8_t*)signal, 5, SHMEM_SIGNAL_ADD, 0);
  shmem_putmem_signal_nbi(there, from, sizeof(from), signal, 2, SHMEM_SIGNAL_ADD, 0);
  CHECK(*signal == 7 && there[2] == 3);
  shmem_put_int64_mem_signal_nbi(there, from, 0, (uint8_t*)signal, -1, SHMEM_SIGNAL_SET, 0);
  CHECK(*signal == -1);
  shmem_free(signal);
  shmem_free(there);
}

static void check_job(void) {
  shmem_team_t team, x, y;
  shmem_team_config_t config;
  char text[8] = "before", *block = shmem_malloc(8);
  long* zeros = shmem_calloc(4, sizeof(long));
  CHECK(shmem_init_status() == SHMEM_STATUS_IS_INITIALIZED && shmem_my_pe() == 0 &&
        shmem_n_pes() == 1);
  CHECK(block != NULL && zeros != NULL && zeros[3] == 0 && shmem_ptr(block + 1, 0) == block + 1);
  CHECK(shmem_ptr(block, 1) == NULL && shmem_ptr(text, 0) == NULL && shmem_malloc(0) == NULL);
  CHECK(shmem_align(24, 8) == NULL && shmem_align(256, 8) != NULL &&
        shmem_calloc(SIZE_MAX, 2) == NULL);
  shmem_putmem(block, text, sizeof(text), 0);
  memset(text, 0, sizeof(text));
  shmem_getmem_nbi(text, block, sizeof(text), 0);
  CHECK(strcmp(text, "before") == 0);
  check_typed();
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, &team) == 0 && team > 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 0, 1, &x) == SHMEM_INVALID_PARAM &&
        x == SHMEM_TEAM_INVALID);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, &x) == SHMEM_INVALID_PARAM);
  CHECK(shmem_team_split_2d(team, 3, &x, &y) == 0 && shmem_team_n_pes(x) == 1 &&
        shmem_team_my_pe(y) == 0);
  CHECK(shmem_team_split_2d(team, 0, &x, &y) == SHMEM_INVALID_PARAM);
  CHECK(shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD) == 0 &&
        shmem_team_translate_pe(team, 0, 4711) == -1);
  CHECK(shmem_team_get_config(team, &config) == 0 && config.num_contexts == 0);
  shmem_barrier(team);
  shmem_barrier(SHMEM_TEAM_INVALID);
  shmem_barrier_all();
  shmem_team_destroy(team);
  CHECK(shmem_team_my_pe(team) == -1);
  shmem_free(block + 1); /* only a line in the log */
  shmem_free(block);
  shmem_free(NULL);
}

int main(void) {
  shmem_init_attr_t* attributes = NULL;
  shmem_uniqueid_t uid;
  CHECK(shmem_set_extern_logger(count_line) == SHMEM_SUCCESS && memspan_last_error()[0] == 0);
  check_what_is_refused();
  CHECK(lines > 0);
  CHECK(shmem_set_attr(0, 1, 1 << 20, "tcp://127.0.0.1:8666", &attributes) == SHMEM_SUCCESS);
  CHECK(strcmp(attributes->ip_port, "tcp://127.0.0.1:8666") == 0);
  CHECK(attributes->option_attr.shm_init_timeout == 120 &&
        attributes->option_attr.data_op_engine_type == SHMEM_DATA_OP_MTE);
  CHECK(shmem_init_attr(attributes) == SHMEM_SUCCESS);
  CHECK(shmem_init_attr(attributes) == SHMEM_INNER_ERROR);
  check_job();
  CHECK(shmem_finalize() == SHMEM_SUCCESS && shmem_finalize() == SHMEM_SUCCESS);
  /* Again, by a unique id. */
  CHECK(shmem_get_uniqueid(&uid) == SHMEM_SUCCESS &&
        shmem_set_attr(0, 1, 1 << 20, NULL, &attributes) == SHMEM_SUCCESS);
  CHECK(shmem_set_attr_uniqueid_args(0, 1, &uid, attributes) == SHMEM_SUCCESS &&
        shmem_n_pes() == 1);
  CHECK(shmem_finalize() == SHMEM_SUCCESS);
  uid.version = 0;
  CHECK(shmem_set_attr_uniqueid_args(0, 1, &uid, attributes) == SHMEM_INVALID_PARAM);
  return 0;
}
