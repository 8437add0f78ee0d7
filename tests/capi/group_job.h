/* SPDX-License-Identifier: Apache-2.0
 * Processes for the tests of groups: each is a fork of the test and meets the others through memory
 * that all have. */
#ifndef MEMSPAN_TESTS_CAPI_GROUP_JOB_H
#define MEMSPAN_TESTS_CAPI_GROUP_JOB_H

#include <memspan/memspan.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { kMostMembers = 3, kTexts = 8, kMostText = 2048, kSeconds = 30 };

/* What the processes exchange texts through, and words for the test's own use. */
struct board {
  atomic_int here[kTexts];
  char texts[kTexts][kMostMembers][kMostText];
  atomic_int said[8];
  _Atomic double when;
};
struct meeting {
  struct board* board;
  int members;
  int rank;
  int round;
};

static inline double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* 0 when the count did not come in time. */
static inline int wait_for_count(atomic_int* count, int least) {
  const double end = now() + kSeconds;
  while (atomic_load(count) < least) {
    if (now() > end) return 0;
    sched_yield();
  }
  return 1;
}

/* A text's place is used again, by when all have read it. */
static inline int exchange(void* user, const void* mine, size_t bytes, void* all) {
  struct meeting* self = user;
  if (bytes > kMostText) return 1;
  struct board* board = self->board;
  const int place = self->round % kTexts;
  memcpy(board->texts[place][self->rank], mine, bytes);
  atomic_fetch_add(&board->here[place], 1);
  if (!wait_for_count(&board->here[place], (self->round / kTexts + 1) * self->members)) return 2;
  for (int member = 0; member < self->members; ++member)
    memcpy((char*)all + (size_t)member * bytes, board->texts[place][member], bytes);
  ++self->round;
  return 0;
}

/* Whether the last failure says this. */
static inline int says(const char* text) {
  if (strstr(memspan_last_error(), text) != NULL) return 1;
  fprintf(stderr, "instead of \"%s\": %s\n", text, memspan_last_error());
  return 0;
}

/* Each process runs `run`, which returns or ends with 0, but for `killed`, which ends by SIGKILL;
 * -1: none. 0 when all did. */
static inline int run_members(int members, void (*run)(struct meeting*), int killed) {
  struct board* board =
      mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(board != MAP_FAILED);
  pid_t children[kMostMembers];
  for (int rank = 0; rank < members; ++rank) {
    children[rank] = fork();
    CHECK(children[rank] >= 0);
    if (children[rank] != 0) continue;
    struct meeting meeting = {board, members, rank, 0};
    run(&meeting);
    exit(0);
  }
  int failed = 0;
  for (int i = 0; i < members; ++i) {
    int status = 0;
    const pid_t child = wait(&status);
    CHECK(child > 0);
    const int is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    int rank = 0;
    while (children[rank] != child) ++rank;
    children[rank] = 0;
    if (failed || (rank == killed ? is_killed : status == 0)) continue;
    fprintf(stderr, "member %d ended with status %d\n", rank, status);
    failed = 1;
    /* The others would wait for one that failed until their time-out. */
    for (int other = 0; other < members; ++other)
      if (children[other] != 0) kill(children[other], SIGKILL);
  }
  munmap(board, sizeof *board);
  return failed;
}

#endif
