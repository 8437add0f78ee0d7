/* SPDX-License-Identifier: Apache-2.0
 * The CANN SHMEM face with peers that do not come, are dead, or come and go:
 *   failure_early CALL RANK RANKS URL SECONDS V   all but rank V make the call; the time-outs are
 * SECONDS failure_early churn RANK RANKS URL SECONDS 0  joins and leaves for ever; URL's port is of
 * cycle 1 failure_early guest RANK RANKS URL SECONDS 0  joins once, says "ready", leaves when stdin
 * ends Says "ready RANK PID" before, and after a call that returns returned RANK CODE MILLISECONDS
 * REASON (CODE 0 for a pointer that is not NULL, 1 for NULL), and then what it holds after
 * finalize.
 */
#include <memspan/memspan.h>
#include <shmem_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/holdings.h"

static shmem_init_attr_t* attributes;
static int rank, size;
static void* block;
static shmem_team_t team;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static int join(const char* url, int seconds) {
  int failure = shmem_set_attr(rank, size, 64 << 20, url, &attributes);
  if (failure != 0) return failure;
  shmem_set_timeout(attributes, (uint32_t)seconds);
  return shmem_init_attr(attributes);
}

static int pointer_code(void* pointer) {
  return pointer == NULL;
}

static int make_call(const char* call) {
  if (strcmp(call, "barrier") == 0) return shmem_barrier(SHMEM_TEAM_WORLD), 0;
  if (strcmp(call, "barrier_all") == 0) return shmem_barrier_all(), 0;
  if (strcmp(call, "malloc") == 0) return pointer_code(shmem_malloc(100));
  if (strcmp(call, "malloc_nothing") == 0) return shmem_malloc(0), 0;
  if (strcmp(call, "calloc") == 0) return pointer_code(shmem_calloc(10, 10));
  if (strcmp(call, "align") == 0) return pointer_code(shmem_align(4096, 100));
  if (strcmp(call, "free") == 0) return shmem_free(block), 0;
  /* The first collective of the team, which makes it. */
  if (strcmp(call, "team_barrier") == 0) return shmem_barrier(team), 0;
  if (strcmp(call, "finalize") == 0) return shmem_finalize();
  return 99;
}

static void say_ready(void) {
  printf("ready %d %d\n", rank, (int)getpid());
  fflush(stdout);
}

static void report(int code, double since) {
  printf("returned %d %d %.3f %s\n", rank, code, now_ms() - since, memspan_last_error());
  fflush(stdout);
}

/* Both always meet at the same place: the port of one cycle is free again for the next. */
static void churn(const char* url, int seconds) {
  for (long cycle = 1;; ++cycle) {
    int code = join(url, seconds);
    if (code == 0) {
      void* memory = shmem_malloc(1000);
      if (memory != NULL) shmem_barrier_all();
      code = shmem_finalize();
    }
    printf("cycle %ld %d\n", cycle, code);
    if (cycle % 4 == 1) say_holdings(cycle);
    fflush(stdout);
  }
}

/* One who joins again and again while others join, leave and die: a word of stdin for each cycle,
 * the URL to meet at. */
static void host(int seconds) {
  char url[SHMEM_IP_PORT_LENGTH];
  say_ready();
  for (long cycle = 1; fgets(url, sizeof url, stdin) != NULL; ++cycle) {
    url[strcspn(url, "\n")] = '\0';
    int code = join(url, seconds);
    printf("joined %d\n", code);
    fflush(stdout);
    if (code == 0) {
      /* NULL when the guest dies; ends with the guest's own free and finalize otherwise. */
      block = shmem_malloc(1000);
      code = shmem_finalize();
    }
    printf("left %d\n", code);
    say_holdings(cycle);
    fflush(stdout);
  }
}

/* 16 GiB are more than any limit of the tests. */
static int take_all_memory(void) {
  const size_t kPiece = 8 << 20;
  rank = atoi(getenv("RANK"));
  size = atoi(getenv("WORLD_SIZE"));
  if (shmem_set_attr(rank, size, 60 << 20, NULL, &attributes) != 0) return 1;
  if (shmem_init_attr(attributes) != 0) return 1;
  for (int piece = 0; piece < 2048; ++piece) {
    void* memory = shmem_malloc(kPiece);
    if (memory == NULL) {
      printf("refused %d\n", memspan_last_error()[0] != '\0');
      return shmem_finalize();
    }
    memset(memory, 1, kPiece);
  }
  return 1;
}

int main(int count, char** arguments) {
  if (count < 7) return 2;
  const char* call = arguments[1];
  rank = atoi(arguments[2]);
  size = atoi(arguments[3]);
  const char* url = arguments[4];
  const int seconds = atoi(arguments[5]);
  const int victim = atoi(arguments[6]);
  if (strcmp(call, "limit") == 0) return take_all_memory();
  if (strcmp(call, "churn") == 0) churn(url, seconds);
  if (strcmp(call, "host") == 0) return host(seconds), 0;
  if (strcmp(call, "init") == 0 || strcmp(call, "guest") == 0) {
    const double since = now_ms();
    if (call[0] == 'i') say_ready();
    int code = join(url, seconds);
    if (call[0] == 'i') return report(code, since), 0;
    if (code != 0) return 1;
    say_ready();
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    shmem_malloc(1000);
    return shmem_finalize();
  }
  printf("before ");
  say_holdings(0);
  if (join(url, seconds) != 0) return 3;
  block = shmem_malloc(1000);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, size, &team);
  say_ready();
  if (rank == victim)
    for (;;) pause();
  /* Begins when stdin ends: the victim is stopped or dead by then, or about to be. */
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  double since = now_ms();
  report(make_call(call), since);
  if (strcmp(call, "finalize") != 0) {
    since = now_ms();
    report(shmem_finalize(), since);
  }
  printf("after ");
  say_holdings(0);
  /* The process is as it was: a job of one can begin. */
  size = 1;
  rank = 0;
  printf("again %d\n", join(url, seconds) == 0 ? shmem_finalize() : -1);
  return 0;
}
