/* SPDX-License-Identifier: Apache-2.0
 * What MemFabric's parts share: codes, last error, log, and stores that this process hosts. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <smem/host/smem.h>
#include <smem/host/smem_bm.h>
#include <smem/host/smem_shm.h>
#include <smem/host/smem_trans.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/free_url.h"

static int lines;

static void count_line(int level, const char* line) {
  (void)level;
  lines += strlen(line) > 0 && strchr(line, '\n') == NULL;
}

/* The last failure was of this code, and its sentence has these words; after that none is kept. */
static int failed_with(int32_t code, int32_t expected, const char* words) {
  int is_right = code == expected && smem_get_last_err_code() == expected &&
                 strstr(smem_get_last_err_msg(), words) != NULL;
  if (!is_right)
    fprintf(stderr, "code %d, text \"%s\", wanted %d and \"%s\"\n", (int)code,
            smem_get_last_err_msg(), (int)expected, words);
  const char* taken = smem_get_and_clear_last_err_msg();
  return is_right && strstr(taken, words) != NULL && smem_get_last_err_msg()[0] == '\0' &&
         smem_get_last_err_code() == SMEM_OK;
}

static void check_codes(void) {
  CHECK(smem_get_last_err_msg() != NULL && smem_get_last_err_msg()[0] == '\0');
  CHECK(strcmp(smem_get_error_string(SMEM_OK), "success") == 0);
  CHECK(strcmp(smem_get_error_string(SMEM_TIMEOUT), "timeout") == 0);
  CHECK(strcmp(smem_get_error_string(-4711), "unknown error") == 0);
  CHECK(smem_init(0) == SMEM_OK);
}

static void check_log(void) {
  CHECK(failed_with(smem_set_extern_logger(NULL), SMEM_INVALID_PARAM, "invalid param"));
  CHECK(failed_with(smem_set_log_level(5), SMEM_INVALID_PARAM, "0 to 4"));
  CHECK(failed_with(smem_set_log_level(-1), SMEM_INVALID_PARAM, "-1"));
  CHECK(smem_set_extern_logger(count_line) == SMEM_OK && smem_set_log_level(3) == SMEM_OK);
  CHECK(smem_set_log_level(9) != SMEM_OK && lines == 1);
  CHECK(smem_set_log_level(4) == SMEM_OK && smem_set_log_level(9) != SMEM_OK && lines == 1);
  smem_get_and_clear_last_err_msg();
}

/* What fails again and again is kept for the caller each time, and written a few times only. */
static void check_flood(void) {
  CHECK(smem_set_log_level(3) == SMEM_OK);
  lines = 0;
  for (int i = 0; i < 1000; ++i)
    CHECK(failed_with(smem_set_log_level(9), SMEM_INVALID_PARAM, "level is 9"));
  CHECK(lines <= 20);
}

static void check_protection(void) {
  static char long_text[(10 << 10) + 1];
  CHECK(failed_with(smem_set_conf_store_tls(true, NULL, 0), SMEM_INVALID_PARAM, "tls_info"));
  CHECK(
      failed_with(smem_set_conf_store_tls(true, "tlsCart: a", 10), SMEM_INVALID_PARAM, "tlsCart"));
  CHECK(failed_with(smem_set_conf_store_tls(true, long_text, sizeof long_text), SMEM_INVALID_PARAM,
                    "10241 bytes"));
  CHECK(failed_with(smem_set_config_store_tls_key(NULL, 0, NULL, 0, NULL), SMEM_INVALID_PARAM,
                    "tls_pk"));
  CHECK(failed_with(smem_set_config_store_tls_key("k", 1, long_text, sizeof long_text, NULL),
                    SMEM_INVALID_PARAM, "tls_pk_pw"));
}

static int listens(const char* url) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  address.sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1));
  int door = socket(AF_INET, SOCK_STREAM, 0);
  int answers = connect(door, (struct sockaddr*)&address, sizeof address) == 0;
  close(door);
  return answers;
}

static void check_stores(void) {
  char url[64];
  CHECK(write_free_url(url, sizeof url));
  CHECK(failed_with(smem_create_config_store(NULL), SMEM_INVALID_PARAM, "storeURL is null"));
  CHECK(failed_with(smem_create_config_store("nowhere"), SMEM_INVALID_PARAM, "nowhere"));
  CHECK(
      failed_with(smem_create_config_store("tcp://127.0.0.1:65536"), SMEM_INVALID_PARAM, "65536"));
  CHECK(
      failed_with(smem_create_config_store("tcp://127.0.0.1:0"), SMEM_INVALID_PARAM, "1 to 65535"));
  CHECK(failed_with(smem_destroy_config_store(url), SMEM_NOT_EXIST, url));
  CHECK(smem_create_config_store(url) == SMEM_OK && listens(url));
  CHECK(smem_create_config_store(url) == SMEM_OK);
  /* A child of fork() hosts nothing: its parent has the address. */
  pid_t child = fork();
  if (child == 0)
    _exit(smem_create_config_store(url) == SMEM_RES_IN_USE &&
                  smem_destroy_config_store(url) == SMEM_NOT_EXIST
              ? 0
              : 1);
  int state = -1;
  CHECK(child > 0 && waitpid(child, &state, 0) == child && state == 0);
  CHECK(listens(url) && smem_destroy_config_store(url) == SMEM_OK && !listens(url));
  CHECK(smem_create_config_store(url) == SMEM_OK && listens(url)); /* left to check_ends() */
}

/* A store ends with the last uninit of what its process initialized, however it came to be. */
static void check_ends(void) {
  char url[64];
  smem_bm_config_t bm;
  smem_shm_config_t shm;
  smem_trans_config_t trans;
  CHECK(write_free_url(url, sizeof url));
  CHECK(smem_bm_config_init(&bm) == SMEM_OK && smem_shm_config_init(&shm) == SMEM_OK &&
        smem_trans_config_init(&trans) == SMEM_OK);
  CHECK(smem_bm_init(url, 1, 0, &bm) == SMEM_OK && listens(url));
  CHECK(smem_shm_init(url, 1, 0, 0, &shm) == SMEM_OK && smem_trans_init(&trans) == SMEM_OK);
  smem_bm_uninit(0);
  CHECK(listens(url));
  smem_shm_uninit(0);
  CHECK(listens(url));
  smem_trans_uninit(0);
  CHECK(!listens(url) && smem_destroy_config_store(url) == SMEM_NOT_EXIST);
  /* What was never initialized ends nothing; what only hosts ends, too. */
  CHECK(smem_create_config_store(url) == SMEM_OK);
  smem_bm_uninit(0);
  CHECK(listens(url));
  bm.startConfigStoreOnly = true;
  CHECK(smem_bm_init(url, 1, 0, &bm) == SMEM_OK);
  smem_bm_uninit(0);
  CHECK(!listens(url));
}

int main(void) {
  check_codes();
  check_log();
  check_flood();
  check_protection();
  check_stores();
  check_ends();
  smem_uninit();
  return 0;
}
