/* SPDX-License-Identifier: Apache-2.0
 * Fails in the way that the argument says, so that test_explain.py has the message that a user
 * would see. */
#include <memspan/memspan.h>
#include <shmem.h>
#include <signal.h>
#include <smem/host/smem.h>
#include <smem/host/smem_bm.h>
#include <smem/host/smem_trans.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_case(const char* name, const char* asked) {
  return strcmp(name, asked) == 0;
}

static void fail_in_job(const char* asked) {
  long local = 0;
  long* const word = shmem_malloc(sizeof(long));
  if (is_case("pe", asked)) shmem_long_p(word, 1, 99);
  if (is_case("local", asked)) shmem_long_p(&local, 1, 0);
  if (is_case("full", asked) && shmem_malloc((size_t)1 << 40) == NULL) puts(memspan_last_error());
  if (is_case("limit", asked) && shmem_malloc((size_t)256 << 20) == NULL)
    puts(memspan_last_error());
  if (is_case("free", asked)) {
    shmem_free(word);
    shmem_free(word);
  }
  if (is_case("fork", asked)) {
    if (fork() == 0) shmem_barrier_all();
    wait(NULL);
  }
  if (is_case("calls", asked)) {
    if (shmem_my_pe() == 0) shmem_barrier_all();
    shmem_sync_all();
  }
  if (is_case("kill", asked)) {
    if (shmem_my_pe() == 1) raise(SIGKILL);
    shmem_barrier_all();
  }
}

static void fail_in_pool(const char* url) {
  smem_bm_config_t config;
  smem_bm_config_init(&config);
  smem_init(0);
  if (smem_bm_init(url, 1, 0, &config) != 0) puts(smem_get_last_err_msg());
  const smem_bm_create_option_t option = {.maxDramSize = 1 << 21, .localDRAMSize = 1 << 22};
  if (smem_bm_create2(0, &option) == NULL) puts(smem_get_last_err_msg());
}

static void fail_in_transfer(const char* url) {
  static char memory[4096];
  smem_trans_config_t config;
  smem_trans_config_init(&config);
  config.role = SMEM_TRANS_BOTH;
  smem_init(0);
  smem_trans_init(&config);
  smem_trans_t one = smem_trans_create(url, "127.0.0.1:1001", &config);
  smem_trans_t other = smem_trans_create(url, "127.0.0.1:1002", &config);
  if (one == NULL || other == NULL) puts(smem_get_last_err_msg());
  if (smem_trans_write(one, memory, "127.0.0.1:1003", memory, 8) != 0)
    puts(smem_get_last_err_msg());
  if (smem_trans_write(one, memory, "127.0.0.1:1002", memory, 8) != 0)
    puts(smem_get_last_err_msg());
}

int main(int count, char** arguments) {
  const char* const asked = count > 1 ? arguments[1] : "";
  if (is_case("early", asked)) shmem_barrier_all();
  if (is_case("pool", asked)) fail_in_pool(arguments[2]);
  if (is_case("transfer", asked)) fail_in_transfer(arguments[2]);
  if (is_case("pool", asked) || is_case("transfer", asked)) return 0;
  shmem_init();
  if (is_case("twice", asked)) shmem_init();
  if (is_case("no_end", asked)) _exit(0);
  if (is_case("wait", asked)) pause();
  fail_in_job(asked);
  shmem_finalize();
  return 0;
}
