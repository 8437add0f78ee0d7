/* SPDX-License-Identifier: Apache-2.0
 * A job of one: every family once, and what the standard says of empty sets, zero lengths,
 * counted initialisation. */
#include <limits.h>
#include <pshmem.h>
#include <shmem.h>
#include <stdbool.h>
#include <string.h>

#include "support/check.h"

static void check_memory(void) {
  char* block = shmem_align(4096, 100);
  long* zeros = shmem_calloc(1000, sizeof(long));
  CHECK(block != NULL && (uintptr_t)block % 4096 == 0);
  CHECK(zeros != NULL && zeros[999] == 0);
  CHECK(shmem_malloc(0) == NULL && shmem_calloc(0, 8) == NULL &&
        shmem_calloc(SIZE_MAX, 16) == NULL);
  CHECK(shmem_ptr(block, 0) == block && shmem_ptr(block, 1) == NULL &&
        shmem_ptr(&block, 0) == NULL);
  CHECK(shmem_addr_accessible(block, 0) == 1 && shmem_addr_accessible(&block, 0) == 0);
  CHECK(shmem_pe_accessible(0) == 1 && shmem_pe_accessible(1) == 0 && shmem_pe_accessible(-1) == 0);
  strcpy(block, "kept");
  block = shmem_realloc(block, 100000);
  CHECK(block != NULL && strcmp(block, "kept") == 0);
  CHECK(shmem_realloc(block, 0) == NULL);
  block = shmem_malloc_with_hints(8, SHMEM_MALLOC_SIGNAL_REMOTE);
  CHECK(block != NULL);
  shmem_free(block);
  shmem_free(zeros);
  shmem_free(NULL);
}

static void check_put_get(void) {
  int from[16], to[16];
  int* there = shmem_calloc(32, sizeof(int));
  for (int i = 0; i < 16; ++i) from[i] = i + 1;
  shmem_int_put(there, from, 16, 0);
  shmem_int_get_nbi(to, there, 16, 0);
  shmem_quiet();
  CHECK(memcmp(from, to, sizeof(from)) == 0);
  shmem_int_iput(there, from, 2, 3, 5, 0);
  CHECK(there[0] == 1 && there[2] == 4 && there[8] == 13);
  shmem_ibget32(to, there, 1, 4, 1, 3, 0);
  CHECK(to[0] == there[0] && to[1] == there[4] && to[2] == there[8]);
  shmem_int_p(&there[31], 7, 0);
  CHECK(shmem_int_g(&there[31], 0) == 7 && pshmem_int_g(&there[31], 0) == 7);
  shmem_putmem(NULL, NULL, 0, 0);
  shmem_getmem(NULL, NULL, 0, 0);
  shmem_longdouble_iput(NULL, NULL, 1, 1, 0, 0);
  shmem_free(there);
}

static void check_atomics(void) {
  long* word = shmem_calloc(1, sizeof(long));
  double* real = shmem_calloc(1, sizeof(double));
  unsigned int* bits = shmem_calloc(1, sizeof(unsigned int));
  long before = -1;
  CHECK(shmem_long_atomic_fetch_add(word, 5, 0) == 0 && shmem_long_atomic_fetch_inc(word, 0) == 5);
  CHECK(shmem_long_atomic_compare_swap(word, 6, 10, 0) == 6 &&
        shmem_long_atomic_compare_swap(word, 6, 11, 0) == 10);
  shmem_long_atomic_swap_nbi(&before, word, 3, 0);
  shmem_quiet();
  CHECK(before == 10 && shmem_long_atomic_fetch(word, 0) == 3);
  shmem_double_atomic_set(real, 2.5, 0);
  CHECK(shmem_double_atomic_swap(real, -1.0, 0) == 2.5 && *real == -1.0);
  shmem_uint_atomic_or(bits, 0xf0u, 0);
  CHECK(shmem_uint_atomic_fetch_xor(bits, 0xffu, 0) == 0xf0u &&
        shmem_uint_atomic_fetch_and(bits, 3u, 0) == 0x0fu);
  CHECK(*bits == 3u);
  shmem_free(bits);
  shmem_free(real);
  shmem_free(word);
}

static void check_waits(void) {
  int* words = shmem_calloc(4, sizeof(int));
  int status[4] = {0, 1, 0, 0}, values[4] = {0, 100, 2, 3}, seen = 0;
  size_t indices[4];
  uint64_t* signal = shmem_calloc(1, sizeof(uint64_t));
  for (int i = 0; i < 4; ++i) words[i] = i;
  shmem_int_wait_until(&words[3], SHMEM_CMP_GT, 2);
  CHECK(shmem_int_test(&words[3], SHMEM_CMP_LE, 2) == 0);
  shmem_int_wait_until_all_vector(words, 4, status, SHMEM_CMP_EQ, values);
  CHECK(shmem_int_test_all(words, 4, NULL, SHMEM_CMP_GE, 1) == 0 &&
        shmem_int_test_all(words, 0, NULL, SHMEM_CMP_GE, 1) == 1);
  CHECK(shmem_int_wait_until_some(words, 4, indices, status, SHMEM_CMP_GE, 1) == 2 &&
        indices[0] == 2 && indices[1] == 3);
  CHECK(shmem_int_test_any(words, 4, status, SHMEM_CMP_EQ, 1) == SIZE_MAX);
  CHECK(shmem_int_wait_until_any(words, 0, NULL, SHMEM_CMP_EQ, 1) == SIZE_MAX);
  CHECK(shmem_int_wait_until_some(words, 0, indices, NULL, SHMEM_CMP_EQ, 1) == 0);
  for (int i = 0; i < 500; ++i) seen |= 1 << shmem_int_test_any(words, 4, status, SHMEM_CMP_GE, 0);
  CHECK(seen == 0xd); /* in the end each that holds is told */
  shmem_signal_add(signal, 4, 0);
  shmem_putmem_signal(words, values, sizeof(values), signal, 3, SHMEM_SIGNAL_ADD, 0);
  CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_GE, 7) == 7 && words[1] == 100);
  shmem_signal_set(signal, 1, 0);
  CHECK(shmem_signal_fetch(signal) == 1);
  shmem_free(signal);
  shmem_free(words);
}

static void check_teams_and_contexts(void) {
  shmem_team_t team = SHMEM_TEAM_WORLD, x, y, found;
  shmem_team_config_t config = {3};
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  int* there = shmem_calloc(1, sizeof(int));
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0 &&
        team == SHMEM_TEAM_INVALID);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                 &team) == 0);
  config.num_contexts = 0;
  CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0 &&
        config.num_contexts == 3);
  CHECK(shmem_team_get_config(team, 0, NULL) == 0 &&
        shmem_team_get_config(SHMEM_TEAM_INVALID, 0, NULL) != 0);
  CHECK(shmem_team_my_pe(team) == 0 && shmem_team_n_pes(team) == 1 && shmem_team_sync(team) == 0);
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
  CHECK(shmem_team_translate_pe(team, 0, SHMEM_TEAM_SHARED) == 0 &&
        shmem_team_translate_pe(team, 1, SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_team_split_2d(team, 4, NULL, 0, &x, NULL, 0, &y) == 0 && x != SHMEM_TEAM_INVALID &&
        y != SHMEM_TEAM_INVALID);
  CHECK(shmem_team_ptr(team, there, 0) == there && shmem_team_ptr(team, there, 1) == NULL);
  CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &context) != 0 &&
        context == SHMEM_CTX_INVALID);
  CHECK(shmem_team_create_ctx(team, SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE, &context) == 0);
  CHECK(shmem_ctx_get_team(context, &found) == 0 && found == team);
  shmem_ctx_session_start(context, SHMEM_CTX_SESSION_BATCH, NULL, 0);
  shmem_ctx_int_p(context, there, 9, 0);
  shmem_ctx_fence(context);
  shmem_ctx_session_stop(context);
  shmem_ctx_quiet(SHMEM_CTX_INVALID);
  shmem_ctx_pe_quiet(context, (const int[]){0}, 1);
  CHECK(*there == 9);
  shmem_ctx_destroy(context);
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  shmem_team_destroy(x);
  shmem_team_destroy(y);
  shmem_team_destroy(team);
  shmem_team_destroy(SHMEM_TEAM_INVALID);
  shmem_free(there);
}

static void check_collectives(void) {
  double* source = shmem_calloc(4, sizeof(double));
  double* dest = shmem_calloc(4, sizeof(double));
  for (int i = 0; i < 4; ++i) source[i] = i + 0.5;
  CHECK(shmem_double_broadcast(SHMEM_TEAM_WORLD, dest, source, 4, 0) == 0 && dest[3] == 3.5);
  CHECK(shmem_double_sum_reduce(SHMEM_TEAM_WORLD, dest, dest, 4) == 0 && dest[0] == 0.5);
  CHECK(shmem_fcollectmem(SHMEM_TEAM_SHARED, dest, source, 8) == 0 && dest[0] == 0.5);
  CHECK(shmem_double_collect(SHMEM_TEAM_WORLD, dest, source + 1, 1) == 0 && dest[0] == 1.5);
  CHECK(shmem_double_alltoalls(SHMEM_TEAM_WORLD, dest, source, 3, 2, 2) == 0 && dest[3] == 2.5);
  shmem_free(dest);
  shmem_free(source);
}

static bool is_initialized(void) {
  int initialized = -1;
  shmem_query_initialized(&initialized);
  return initialized != 0;
}

int main(void) {
  int provided = -1;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 &&
        provided == SHMEM_THREAD_MULTIPLE);
  shmem_query_thread(&provided);
  CHECK(provided == SHMEM_THREAD_MULTIPLE && shmem_my_pe() == 0 && shmem_n_pes() == 1);
  check_memory();
  check_put_get();
  check_atomics();
  check_waits();
  check_teams_and_contexts();
  check_collectives();
  shmem_barrier_all();
  shmem_sync_all();
  shmem_pcontrol(1, "anything");
  shmem_init();
  shmem_finalize();
  CHECK(is_initialized());
  shmem_finalize();
  CHECK(!is_initialized());
  shmem_init();
  CHECK(is_initialized());
  shmem_finalize();
  return 0;
}
