/* SPDX-License-Identifier: Apache-2.0
 * Every OpenSHMEM call that may block, made so that it does:
 *   failure_blocked CALL V     all but rank V make the call until they are ended; V never does
 *   failure_blocked CALL all N all make it N times, then "done RANK"
 *   failure_blocked mixed all N    every collective in turn
 *   failure_blocked late-death V   as finalize, but only once V is known to be dead
 *   failure_blocked cycles 0       leaves and joins the job for ever; a line with what it holds now
 * and then
 * Says "ready RANK PID" when it begins. A wait in the second form is fed by the rank before.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/holdings.h"

enum { kWords = 4, kMany = 3000, kMostPes = 8 };

static long* words; /* kWords a peer may wait for */
static uint64_t* signal_word;
static long* source; /* kMany for each peer */
static long* dest;
static void* block;       /* for free and realloc */
static shmem_team_t team; /* for destroy */
static int me, size;

static void feed(int is_fed, long round) {
  int next = (me + 1) % size;
  if (!is_fed) return;
  for (int i = 0; i < kWords; ++i) shmem_long_p(&words[i], round, next);
  shmem_uint64_p(signal_word, (uint64_t)round, next);
}

static void make_block(void) {
  block = shmem_malloc(1000);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, size, NULL, 0, &team);
}

/* One call. `round` counts from 1; what is waited for is at least that. */
static int make_call(const char* call, long round, int is_fed) {
  const int ge = SHMEM_CMP_GE;
  long goals[kWords] = {round, round, round, round};
  size_t which[kWords];
  const shmem_team_t all = SHMEM_TEAM_WORLD;
  if (strncmp(call, "wait", 4) == 0 || strcmp(call, "signal_wait") == 0) feed(is_fed, round);
  if (strcmp(call, "barrier_all") == 0) return shmem_barrier_all(), 1;
  if (strcmp(call, "sync_all") == 0) return shmem_sync_all(), 1;
  if (strcmp(call, "team_sync") == 0) return shmem_team_sync(all), 1;
  if (strcmp(call, "wait_until") == 0) return shmem_long_wait_until(words, ge, round), 1;
  if (strcmp(call, "wait_until_all") == 0)
    return shmem_long_wait_until_all(words, kWords, NULL, ge, round), 1;
  if (strcmp(call, "wait_until_any") == 0)
    return shmem_long_wait_until_any(words, kWords, NULL, ge, round), 1;
  if (strcmp(call, "wait_until_some") == 0)
    return shmem_long_wait_until_some(words, kWords, which, NULL, ge, round), 1;
  if (strcmp(call, "wait_until_all_vector") == 0)
    return shmem_long_wait_until_all_vector(words, kWords, NULL, ge, goals), 1;
  if (strcmp(call, "wait_until_any_vector") == 0)
    return shmem_long_wait_until_any_vector(words, kWords, NULL, ge, goals), 1;
  if (strcmp(call, "wait_until_some_vector") == 0)
    return shmem_long_wait_until_some_vector(words, kWords, which, NULL, ge, goals), 1;
  if (strcmp(call, "signal_wait") == 0)
    return shmem_signal_wait_until(signal_word, ge, (uint64_t)round), 1;
  if (strcmp(call, "broadcast") == 0) return shmem_long_broadcast(all, dest, source, 4, 0), 1;
  if (strcmp(call, "broadcast_large") == 0)
    return shmem_long_broadcast(all, dest, source, kMany, 0), 1;
  if (strcmp(call, "collect") == 0) return shmem_long_collect(all, dest, source, (size_t)me + 1), 1;
  if (strcmp(call, "fcollect") == 0) return shmem_long_fcollect(all, dest, source, kMany), 1;
  if (strcmp(call, "alltoall") == 0) return shmem_long_alltoall(all, dest, source, 100), 1;
  if (strcmp(call, "alltoalls") == 0) return shmem_long_alltoalls(all, dest, source, 2, 2, 100), 1;
  if (strcmp(call, "reduce") == 0) return shmem_long_sum_reduce(all, dest, source, 2), 1;
  if (strcmp(call, "reduce_large") == 0) return shmem_long_sum_reduce(all, dest, source, kMany), 1;
  if (strcmp(call, "malloc") == 0) return shmem_free(shmem_malloc(64)), 1;
  if (strcmp(call, "calloc") == 0) return shmem_free(shmem_calloc(8, 8)), 1;
  if (strcmp(call, "align") == 0) return shmem_free(shmem_align(4096, 64)), 1;
  if (strcmp(call, "realloc") == 0) {
    block = shmem_realloc(block, 1000 + 1000 * (size_t)(round % 3));
    return 1;
  }
  if (strcmp(call, "free") == 0) {
    shmem_free(block);
    block = shmem_malloc(1000);
    return 1;
  }
  if (strcmp(call, "team_split_strided") == 0) {
    shmem_team_t fresh;
    shmem_team_split_strided(all, 0, 1, size, NULL, 0, &fresh);
    return shmem_team_destroy(fresh), 1;
  }
  if (strcmp(call, "team_split_2d") == 0) {
    shmem_team_t rows, columns;
    shmem_team_split_2d(all, 2, NULL, 0, &rows, NULL, 0, &columns);
    shmem_team_destroy(rows);
    return shmem_team_destroy(columns), 1;
  }
  if (strcmp(call, "team_destroy") == 0) {
    shmem_team_destroy(team);
    shmem_team_split_strided(all, 0, 1, size, NULL, 0, &team);
    return 1;
  }
  if (strcmp(call, "finalize") == 0) {
    shmem_finalize();
    if (is_fed) shmem_init();
    return 1;
  }
  return 0;
}

static void mixed(long round) {
  static const char* const kCalls[] = {"barrier_all", "broadcast",   "broadcast_large", "collect",
                                       "fcollect",    "alltoall",    "alltoalls",       "reduce",
                                       "sync_all",    "reduce_large"};
  static const size_t kCount = sizeof kCalls / sizeof *kCalls;
  for (size_t i = 0; i < kCount; ++i) make_call(kCalls[i], round, 1);
}

static void prepare(void) {
  me = shmem_my_pe();
  size = shmem_n_pes();
  words = shmem_calloc(kWords, sizeof *words);
  signal_word = shmem_calloc(1, sizeof *signal_word);
  source = shmem_calloc((size_t)kMany * kMostPes, sizeof *source);
  dest = shmem_calloc((size_t)kMany * kMostPes, sizeof *dest);
  make_block();
}

/* What a program of some iterations does again and again: join, use everything, leave. */
static void cycles(void) {
  for (long round = 1;; ++round) {
    shmem_init();
    prepare();
    mixed(round);
    shmem_team_destroy(team);
    shmem_finalize();
    if (round == 1) printf("ready %d %d\n", me, (int)getpid());
    if (round % 16 == 1) say_holdings(round);
    fflush(stdout);
  }
}

int main(int count, char** arguments) {
  const char* call = count > 2 ? arguments[1] : "barrier_all";
  const char* who = count > 2 ? arguments[2] : "all";
  const int is_all = strcmp(who, "all") == 0;
  const long rounds = is_all && count > 3 ? atol(arguments[3]) : 0;
  if (strcmp(call, "cycles") == 0) cycles();
  shmem_init();
  prepare();
  printf("ready %d %d\n", me, (int)getpid());
  fflush(stdout);
  if (!is_all && me == atoi(who))
    for (;;) pause();
  if (strcmp(call, "late-death") == 0) {
    /* Whoever kills V says so by closing our stdin. */
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    call = "finalize";
  }
  for (long round = 1; !is_all || round <= rounds; ++round)
    if (strcmp(call, "mixed") == 0)
      mixed(round);
    else if (!make_call(call, round, is_all))
      return 2;
  printf("done %d\n", me);
  shmem_finalize();
  return 0;
}
