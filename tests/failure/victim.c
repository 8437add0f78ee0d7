/* SPDX-License-Identifier: Apache-2.0
 * A program that does what its first argument says, for tests that watch how it ends:
 *
 * - busy: synchronises, signals and reduces until it is ended; says "ready RANK PID" after the
 *   first round, when it is connected to all that it needs.
 * - hello: says "hello RANK of SIZE" and ends properly.
 * - global-exit C: rank 1 (or 0 of one) ends the job with code C while the others wait.
 * - compute-exit C: the same while the others compute and never call the library.
 * - read-exit C: the same while a thread of each waits for a line of its standard input.
 * - exit-early: the last rank ends with code 5 without finalising, the others wait.
 * - Anything else is one wrong call, see misuse().
 */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_ready(void) {
  printf("ready %d %d\n", shmem_my_pe(), (int)getpid());
  fflush(stdout);
}

static void busy(void) {
  static const size_t kCount = 5000;
  float* numbers = shmem_calloc(kCount, sizeof *numbers);
  float* sums = shmem_calloc(kCount, sizeof *sums);
  uint64_t* signal = shmem_calloc(1, sizeof *signal);
  uint64_t* big = shmem_calloc(1 << 17, sizeof *big);
  int next = (shmem_my_pe() + 1) % shmem_n_pes();
  for (uint64_t round = 1;; ++round) {
    shmem_uint64_put_signal(big, big + (1 << 16), 1 << 16, signal, round, SHMEM_SIGNAL_SET, next);
    shmem_signal_wait_until(signal, SHMEM_CMP_GE, round);
    shmem_float_sum_reduce(SHMEM_TEAM_WORLD, sums, numbers, kCount);
    shmem_barrier_all();
    shmem_free(shmem_malloc(1000));
    if (round == 1) say_ready();
  }
}

static void end_job(int code, int others_compute) {
  int ender = shmem_n_pes() > 1 ? 1 : 0;
  say_ready();
  shmem_barrier_all();
  if (shmem_my_pe() == ender) {
    printf("text that is still in a buffer");
    shmem_global_exit(code);
  }
  for (volatile unsigned long counter = 0; others_compute; ++counter) {
  }
  shmem_barrier_all();
}

static void* read_line(void* unused) {
  char line[16];
  while (fgets(line, sizeof line, stdin) == NULL) {
  }
  return unused;
}

// Returns once a thread waits for a line that nobody writes.
static void begin_to_read(void) {
  int ends[2];
  pthread_t thread;
  if (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) < 0) abort();
  if (pthread_create(&thread, NULL, read_line, NULL) != 0) abort();
  while (ftrylockfile(stdin) == 0) funlockfile(stdin);
}

static void exit_early(void) {
  say_ready();
  if (shmem_my_pe() == shmem_n_pes() - 1) _exit(5);
  shmem_barrier_all();
}

static void misuse(const char* what) {
  long* word = shmem_malloc(sizeof *word);
  long local = 0;
  if (strcmp(what, "pe-too-large") == 0) shmem_long_p(word, 1, shmem_n_pes());
  if (strcmp(what, "pe-negative") == 0) shmem_long_g(word, -1);
  if (strcmp(what, "local-address") == 0) shmem_long_p(&local, 1, 0);
  if (strcmp(what, "past-the-end") == 0) shmem_putmem(word, &local, (size_t)1 << 40, 0);
  if (strcmp(what, "size-overflow") == 0) shmem_long_put(word, &local, (size_t)-1 / 4, 0);
  if (strcmp(what, "free-interior") == 0) shmem_free((char*)word + 4);
  if (strcmp(what, "free-twice") == 0) {
    shmem_free(word);
    shmem_free(word);
  }
  if (strcmp(what, "bad-comparison") == 0) shmem_long_wait_until(word, 17, 0);
  if (strcmp(what, "asymmetric-sizes") == 0) shmem_malloc(100 + 100 * (size_t)shmem_my_pe());
  if (strcmp(what, "other-count") == 0)
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, word, word, (size_t)(1 - shmem_my_pe()));
  if (strcmp(what, "other-root") == 0)
    shmem_broadcastmem(SHMEM_TEAM_WORLD, word, word, 4, shmem_my_pe());
  if (strcmp(what, "other-place") == 0)
    shmem_alltoallmem(SHMEM_TEAM_WORLD, (char*)word + 2 * shmem_my_pe(), word, 1);
  if (strcmp(what, "other-call") == 0) {
    if (shmem_my_pe() == 0) shmem_sync_all();
    shmem_barrier_all();
  }
  if (strcmp(what, "sync-not-set") == 0) {
    long* sync = shmem_malloc(SHMEM_BCAST_SYNC_SIZE * sizeof *sync);
    for (int i = 0; i < SHMEM_BCAST_SYNC_SIZE; ++i) sync[i] = -1;
    shmem_barrier_all();
    shmem_broadcast64(word, word, 1, 0, 0, 0, 2, sync);
  }
  if (strcmp(what, "other-end") == 0) {
    shmem_barrier_all();
    if (shmem_my_pe() == 0) shmem_barrier_all();
    shmem_finalize();
  }
  if (strcmp(what, "after-finalize") == 0) {
    shmem_finalize();
    shmem_long_p(word, 1, 0);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "hello";
  if (strcmp(what, "before-init") == 0) shmem_barrier_all();
  shmem_init();
  if (strcmp(what, "busy") == 0) busy();
  if (strcmp(what, "hello") == 0) printf("hello %d of %d\n", shmem_my_pe(), shmem_n_pes());
  if (strcmp(what, "global-exit") == 0) end_job(atoi(argv[2]), 0);
  if (strcmp(what, "compute-exit") == 0) end_job(atoi(argv[2]), 1);
  if (strcmp(what, "read-exit") == 0) {
    begin_to_read();
    end_job(atoi(argv[2]), 1);
  }
  if (strcmp(what, "exit-early") == 0) exit_early();
  misuse(what);
  shmem_finalize();
  return 0;
}
