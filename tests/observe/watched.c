/* SPDX-License-Identifier: Apache-2.0
 * A job whose calls can be counted from outside: each PE makes so many calls of each kind to the
 * next one, prints "ready", and all but PE 1 wait for it in a barrier; PE 1 (PE 0, when it is
 * alone) reads the pipe WATCHED_HOLD to its end before. Without that variable there is no such
 * barrier. "pool URL" is the member of a pool instead, until its stdin ends, or with "RANK SIZE"
 * one of several, of which rank 0 hosts the store; "blocks URL" puts and gets the pool's entries by
 * key, and reduces in a group. "global_exit" and "exit" are ends by PE 0, with code 3; "handler"
 * has a handler of its own for SIGUSR2, "ignore" ignores it, and "default" removes memspan's. */
#include <fcntl.h>
#include <memspan/group.h>
#include <memspan/kv_pool.h>
#include <shmem.h>
#include <signal.h>
#include <smem/host/smem.h>
#include <smem/host/smem_bm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kPuts = 1000, kGets = 300, kAtomics = 200, kSignals = 100, kBarriers = 5, kBlocks = 10 };

/* A frame of its own, and a name that only the symbol table has. */
__attribute__((noinline)) static void read_to_the_end(int descriptor) {
  char byte;
  while (read(descriptor, &byte, 1) > 0) {
  }
}

static void do_nothing(int number) {
  (void)number;
}

static int exchange_with_nobody(void* user, const void* mine, size_t bytes, void* all) {
  (void)user;
  memcpy(all, mine, bytes);
  return 0;
}

static int reduce_alone(void) {
  float values[8] = {1};
  memspan_group_t group = NULL;
  if (memspan_group_create(0, 1, exchange_with_nobody, NULL, 10000, &group) != 0) return 6;
  for (int i = 0; i < kBarriers; i++)
    if (memspan_group_all_reduce(group, values, values, 8, MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM))
      return 7;
  return memspan_group_destroy(group);
}

static int copy_to_pool(smem_bm_t pool, void* own) {
  static char local[4096];
  smem_copy_params copy = {local, own, sizeof local};
  for (int i = 0; i < kPuts; i++)
    if (smem_bm_copy(pool, &copy, SMEMB_COPY_H2G, 0) != 0) return 4;
  return 0;
}

static int use_blocks(smem_bm_t pool) {
  static char local[4096];
  const memspan_kv_key_t key = {{1}};
  void* const address = local;
  const uint64_t size = sizeof local;
  int32_t result = 0;
  for (int i = 0; i < kBlocks; i++)
    if (memspan_kv_put(pool, &key, 1, &address, &size, 1, &result) != 0 ||
        memspan_kv_get(pool, &key, 1, &address, &size, 1, &result) != 0)
      return 5;
  const uint64_t other = 1; /* than the entry has */
  if (memspan_kv_get(pool, &key, 1, &address, &other, 1, &result) == 0) return 5;
  return reduce_alone();
}

static int be_a_member(const char* url, int rank, int size, int has_blocks) {
  smem_bm_config_t config;
  smem_bm_create_option_t option;
  memset(&option, 0, sizeof option);
  option.maxDramSize = option.localDRAMSize = 4 << 20;
  option.dataOpType = SMEMB_DATA_OP_SDMA;
  void* own = NULL;
  if (smem_init(0) != 0 || smem_bm_config_init(&config) != 0) return 1;
  config.autoRanking = false;
  config.rankId = (uint32_t)rank;
  config.startConfigStoreServer = rank == 0;
  if (smem_bm_init(url, (uint32_t)size, 0, &config) != 0) return 2;
  smem_bm_t pool = smem_bm_create2(7, &option);
  if (pool == NULL || (has_blocks && memspan_kv_start(pool, 0) != 0)) return 3;
  if (smem_bm_join(pool, 0, &own) != 0) return 3;
  const int code = has_blocks ? use_blocks(pool) : copy_to_pool(pool, own);
  if (code != 0) return code;
  printf("ready\n");
  fflush(stdout);
  read_to_the_end(STDIN_FILENO);
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  smem_uninit();
  return 0;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "pool") == 0)
    return be_a_member(argv[2], argc > 3 ? atoi(argv[3]) : 0, argc > 4 ? atoi(argv[4]) : 1, 0);
  if (strcmp(mode, "blocks") == 0) return be_a_member(argv[2], 0, 1, 1);
  if (strcmp(mode, "handler") == 0) {
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    sigaction(SIGUSR2, &action, NULL);
  }
  if (strcmp(mode, "ignore") == 0) signal(SIGUSR2, SIG_IGN);
  shmem_init();
  if (strcmp(mode, "default") == 0) signal(SIGUSR2, SIG_DFL);
  const int me = shmem_my_pe();
  const int next = (me + 1) % shmem_n_pes();
  static long word;
  long* words = shmem_calloc(64, sizeof *words);
  uint64_t* signal = shmem_calloc(1, sizeof *signal);
  long value = 0;
  for (int i = 0; i < kPuts / 2; i++) shmem_long_p(words, i, next);
  for (int i = 0; i < kPuts / 2; i++) shmem_long_put(words, words + 32, 1, next);
  for (int i = 0; i < kGets; i++) shmem_long_get(&value, words, 1, next);
  for (int i = 0; i < kAtomics / 2; i++) shmem_long_atomic_inc(words + 1, next);
  for (int i = 0; i < kAtomics / 2; i++) value += shmem_long_atomic_fetch_add(&word, 1, next);
  for (int i = 0; i < kSignals; i++)
    shmem_putmem_signal(words + 2, words + 32, 8, signal, 1, SHMEM_SIGNAL_ADD, next);
  for (int i = 0; i < kBarriers; i++) shmem_barrier_all();
  if (me == 0 && strcmp(mode, "global_exit") == 0) shmem_global_exit(3);
  if (me == 0 && strcmp(mode, "exit") == 0) exit(3);
  if (words[1] != kAtomics / 2 || *signal != kSignals || word != kAtomics / 2) return 9;
  const char* hold = getenv("WATCHED_HOLD");
  if (hold != NULL) {
    const int held = open(hold, O_RDONLY); /* now: who holds it may be gone after "ready" */
    printf("ready\n");
    fflush(stdout);
    if (me == 1 || next == me) read_to_the_end(held);
    shmem_barrier_all();
  }
  shmem_finalize();
  return 0;
}
