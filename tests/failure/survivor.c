/* SPDX-License-Identifier: Apache-2.0
 * PE 1 of three kills itself; the others are told, go on in a team of their own, and end well. With
 * an argument they leave as soon as they are told: from main without shmem_finalize, with "thread"
 * by exit() in another thread, with "handler" with an exit handler that calls shmem_finalize, which
 * fails once more. */
#include <pthread.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int told = 0;
static char told_call[64];

static void remember(const char* call, int pe, const char* message) {
  if (pe != 1 || strstr(message, "PE 1") == NULL) _exit(3);
  strncpy(told_call, call, sizeof told_call - 1);
  ++told;
}

static void check(int holds, const char* what) {
  if (holds) return;
  printf("not so: %s (told %d times, last by %s)\n", what, told, told_call);
  fflush(stdout);
  _exit(4);
}

static void leave(void) {
  shmem_barrier_all();
  check(told == 1, "the barrier tells of the death");
  printf("left %d\n", shmem_my_pe());
}

static void* leave_by_exit(void* unused) {
  (void)unused;
  leave();
  exit(0);
}

static void leave_in_thread(void) {
  pthread_t thread;
  check(pthread_create(&thread, NULL, leave_by_exit, NULL) == 0, "a thread starts");
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  int provided = 0;
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
  const int me = shmem_my_pe();
  long* word = shmem_calloc(2, sizeof(long));
  shmem_team_t outer = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, 2, NULL, 0, &outer);
  shmemx_set_error_handler(remember);
  shmem_barrier_all();
  /* Not before both have left that barrier, which would else tell of it, too. */
  if (me != 1) shmem_long_atomic_add(&word[0], 1, 1);
  if (me == 1) shmem_long_wait_until(&word[0], SHMEM_CMP_EQ, 2);
  if (me == 1) raise(SIGKILL);
  if (argc > 1 && strcmp(argv[1], "thread") == 0) leave_in_thread();
  if (argc > 1) {
    if (strcmp(argv[1], "handler") == 0) atexit(shmem_finalize);
    leave();
    return 0;
  }

  shmem_barrier_all();
  check(told == 1 && strcmp(told_call, "shmem_barrier_all") == 0, "the barrier tells of the death");
  word[0] = me;
  check(shmem_long_sum_reduce(outer, &word[1], &word[0], 1) == 0, "the living reduce");
  check(word[1] == 2, "the sum is right");
  check(shmem_team_sync(outer) == 0, "the living synchronise");
  shmem_long_p(&word[0], 40 + me, me == 0 ? 2 : 0);
  check(shmem_team_sync(outer) == 0, "the living synchronise again");
  check(word[0] == (me == 0 ? 42 : 40), "puts among the living arrive");
  check(told == 1, "what needs no dead PE tells nothing");
  check(shmem_malloc(64) == NULL && told == 2, "malloc needs all PEs");
  check(shmem_team_sync(SHMEM_TEAM_WORLD) != 0 && told == 3, "so does the world's sync");
  shmem_team_t living = SHMEM_TEAM_INVALID;
  check(shmemx_team_shrink(SHMEM_TEAM_WORLD, &living) == 0, "the living make a team");
  check(shmem_team_n_pes(living) == 2 && shmem_team_my_pe(living) == me / 2, "of two, in order");
  check(shmem_long_sum_reduce(living, &word[1], &word[0], 1) == 0, "which reduces");
  check(word[1] == 82, "rightly");
  shmem_team_t alone = SHMEM_TEAM_INVALID;
  check(shmem_team_split_strided(living, 1, 1, 1, NULL, 0, &alone) == 0, "and splits");
  check((alone != SHMEM_TEAM_INVALID) == (me == 2), "by its own numbers");
  shmem_team_destroy(alone);
  shmem_team_destroy(living);
  check(told == 3, "all that without the dead");
  shmem_finalize();
  check(told == 4, "finalize tells, and returns");
  printf("survived %d\n", me);
  return 0;
}
