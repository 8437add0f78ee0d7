/* SPDX-License-Identifier: Apache-2.0
 * One after the other dies, sometimes while the rest makes a team of the living, until one is left.
 * The argument is a seed, the same for all. */
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 64

static int order[MOST]; /* in which they die */
static int dies_when_told = 0;
static long one = 1;
static long sum;

static void told(const char* call, int pe, const char* message) {
  (void)call, (void)pe, (void)message;
  if (dies_when_told) raise(SIGKILL);
}

static void check(int holds, const char* what) {
  if (holds) return;
  printf("PE %d: not so: %s\n", shmem_my_pe(), what);
  fflush(stdout);
  _exit(4);
}

static shmem_team_t shrunk(shmem_team_t team) {
  int attempts = 0;
  shmem_team_t living = SHMEM_TEAM_INVALID;
  while (shmemx_team_shrink(team, &living) != 0)
    check(++attempts < 1000, "it can fail a few times");
  return living;
}

int main(int count, char** arguments) {
  unsigned seed = count > 1 ? (unsigned)strtoul(arguments[1], NULL, 10) : 1;
  int i, pes, me, dead = 0;
  shmem_team_t team = SHMEM_TEAM_WORLD;
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  if (pes > MOST) return 2;
  for (i = 0; i < pes; ++i) order[i] = i;
  for (i = pes - 1; i > 0; --i) {
    int other = (int)(rand_r(&seed) % (unsigned)(i + 1)), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  shmemx_set_error_handler(told);
  shmem_barrier_all();
  while (dead < pes - 1) {
    /* One dies now, and every second time another when it hears of that. */
    int two = dead % 3 == 0 && dead + 2 < pes;
    if (me == order[dead]) raise(SIGKILL);
    dies_when_told = two && me == order[dead + 1];
    while (shmem_team_sync(team) == 0) continue;
    dead += two ? 2 : 1;
    for (;;) {
      shmem_team_t living = shrunk(team);
      /* More than that: the second was still alive when that team was made. Fewer: this call failed
       * here, and another PE, in which it did not, has died since. */
      const int is_over = shmem_long_sum_reduce(living, &sum, &one, 1) == 0 && sum <= pes - dead;
      team = living;
      if (!is_over) continue;
      dead = pes - (int)sum;
      break;
    }
    check(shmem_team_n_pes(team) == pes - dead, "the team has the living");
    check(shmem_team_translate_pe(team, shmem_team_my_pe(team), SHMEM_TEAM_WORLD) == me,
          "PE numbers follow");
  }
  check(me == order[pes - 1], "the last one is left");
  printf("survived\n");
  shmem_finalize();
  return 0;
}
