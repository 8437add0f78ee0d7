/* SPDX-License-Identifier: Apache-2.0
 * Ends the way that the argument says: one mistake each that the library must not let pass. */
#include <shmem.h>
#include <stdint.h>
#include <string.h>

#include "support/check.h"

static long sync_words[SHMEM_BARRIER_SYNC_SIZE];

static void make(const char* mistake) {
  long local = 0, *there = shmem_calloc(4, sizeof(long));
  uint64_t* signal = shmem_calloc(1, sizeof(uint64_t));
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  if (strcmp(mistake, "address") == 0) shmem_long_p(&local, 1, 0);
  if (strcmp(mistake, "pe") == 0) shmem_long_put(there, &local, 1, 99);
  if (strcmp(mistake, "null_source") == 0) shmem_long_put(there, NULL, 1, 0);
  if (strcmp(mistake, "null_dest") == 0) shmem_getmem(NULL, there, 8, 0);
  if (strcmp(mistake, "first_page") == 0) shmem_putmem_nbi(there, (void*)(uintptr_t)8, 8, 0);
  if (strcmp(mistake, "null_signal_source") == 0)
    shmem_putmem_signal(there, NULL, 8, signal, 1, SHMEM_SIGNAL_SET, 0);
  if (strcmp(mistake, "null_strided") == 0) shmem_long_iput(there, NULL, 1, 1, 2, 0);
  if (strcmp(mistake, "null_team") == 0)
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, NULL);
  if (strcmp(mistake, "null_context") == 0) shmem_ctx_create(0, NULL);
  if (strcmp(mistake, "null_collective") == 0)
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, there, NULL, 1);
  if (strcmp(mistake, "nothing_needs_no_address") == 0) {
    shmem_putmem(there, NULL, 0, 0);
    shmem_getmem(NULL, there, 0, 0);
    shmem_info_get_name(NULL);
    shmem_long_p(&local, 1, 0); /* and this ends it as "address" does */
  }
  if (strcmp(mistake, "compare") == 0) shmem_long_wait_until(there, 6, 1);
  if (strcmp(mistake, "signal") == 0) shmem_putmem_signal(there, &local, 8, signal, 1, 2, 0);
  if (strcmp(mistake, "team") == 0) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team);
    shmem_team_destroy(team);
    shmem_team_sync(team);
  }
  if (strcmp(mistake, "context") == 0) {
    shmem_ctx_create(0, &context);
    shmem_ctx_destroy(context);
    shmem_ctx_long_p(context, there, 1, 0);
  }
  if (strcmp(mistake, "alignment") == 0) shmem_long_atomic_inc((long*)((char*)there + 4), 0);
  if (strcmp(mistake, "overflow") == 0) shmem_long_put(there, &local, SIZE_MAX / 4, 0);
  if (strcmp(mistake, "stride") == 0) shmem_long_iput(there, &local, PTRDIFF_MAX, 1, 3, 0);
  if (strcmp(mistake, "root") == 0) shmem_broadcastmem(SHMEM_TEAM_WORLD, there, there + 1, 8, 1);
  if (strcmp(mistake, "lock") == 0) shmem_clear_lock(there);
  if (strcmp(mistake, "active_set") == 0) shmem_barrier(1, 0, 1, sync_words);
  if (strcmp(mistake, "log_stride") == 0) shmem_sync(0, -1, 1, sync_words);
  if (strcmp(mistake, "sync") == 0) shmem_sync(0, 0, 1, &local);
  if (strcmp(mistake, "global_exit") == 0) shmem_global_exit(7);
}

int main(int count, char** arguments) {
  const char* mistake = count > 1 ? arguments[1] : "";
  printf("started\n");
  if (strcmp(mistake, "before") == 0) return shmem_my_pe();
  shmem_init();
  if (strcmp(mistake, "forgotten_finalize") == 0) return 0;
  make(mistake);
  return 3;
}
