/* SPDX-License-Identifier: Apache-2.0
 * Traffic among all PEs for some seconds, whatever happens to some of them:
 *
 *   failure_storm SECONDS
 *
 * Prints "ready RANK PID" when it begins, and at the end "survived RANK lost PE PE ...". A PE that
 * was reported as lost is not used again. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kMostPes = 64, kMost = 1 << 20 };

static int is_lost[kMostPes];

static void note(const char* call, int pe, const char* message) {
  if (pe >= 0 && pe < kMostPes)
    is_lost[pe] = 1;
  else
    fprintf(stderr, "%s names no PE: %s\n", call, message);
}

static int count_lost(void) {
  int count = 0;
  for (int pe = 0; pe < kMostPes; ++pe) count += is_lost[pe];
  return count;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Another PE that lives, or -1. */
static int choose(unsigned* seed, int me, int pes) {
  for (int tries = 0; tries < 4 * pes; ++tries) {
    const int pe = (int)(rand_r(seed) % (unsigned)pes);
    if (pe != me && !is_lost[pe]) return pe;
  }
  return -1;
}

static void exchange(unsigned* seed, int pe, char* mine, char* theirs, long* words) {
  const size_t sizes[] = {8, 3000, 1 << 16, kMost};
  const size_t bytes = sizes[rand_r(seed) % 4];
  switch (rand_r(seed) % 4) {
    case 0:
      shmem_putmem(theirs, mine, bytes, pe);
      return;
    case 1:
      shmem_getmem(mine, theirs, bytes, pe);
      return;
    case 2:
      shmem_long_atomic_fetch_add(&words[0], 1, pe);
      return;
    default:
      shmem_putmem_nbi(theirs, mine, bytes, pe);
      shmem_quiet();
  }
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 5;
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  unsigned seed = 1 + (unsigned)me;
  char* theirs = shmem_malloc(kMost);
  long* words = shmem_calloc(1, sizeof *words);
  char* mine = calloc(1, kMost);
  if (theirs == NULL || words == NULL || mine == NULL || pes > kMostPes) return 2;
  shmemx_set_error_handler(note);
  shmem_barrier_all();
  printf("ready %d %d\n", me, (int)getpid());
  fflush(stdout);
  const double end = now() + seconds;
  while (now() < end) {
    const int pe = choose(&seed, me, pes);
    if (pe >= 0) exchange(&seed, pe, mine, theirs, words);
    usleep(1000);
  }
  shmem_team_t living = SHMEM_TEAM_INVALID;
  int shrunk = 1;
  for (int known = -1; shrunk != 0 && known < count_lost();) { /* again after a death meanwhile */
    known = count_lost();
    shrunk = shmemx_team_shrink(SHMEM_TEAM_WORLD, &living);
  }
  if (shrunk == 0) shmem_team_sync(living);
  printf("survived %d lost", me);
  for (int pe = 0; pe < pes; ++pe)
    if (is_lost[pe]) printf(" %d", pe);
  printf("\n");
  fflush(stdout);
  free(mine);
  shmem_finalize();
  return shrunk == 0 ? 0 : 3;
}
