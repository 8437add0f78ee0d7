/* SPDX-License-Identifier: Apache-2.0
 * What a job on several hosts promises beside what any job does; the first argument names a case:
 *   compute   the last PE looks at its own memory and makes no call, and is served all the same
 *   sleep     the same, asleep most of the time
 *   pointers  shmem_ptr and SHMEM_TEAM_SHARED know which PEs are on this host
 *   statics   global variables of far PEs
 *   rejoin    leaves the job and joins it again
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long variable = -1;
static long zeroed[1000];

static int failures = 0;

static void check(int is_right, const char* what) {
  if (is_right) return;
  fprintf(stderr, "PE %d: %s\n", shmem_my_pe(), what);
  ++failures;
}

static void look_until(volatile long* word, long value, int does_sleep) {
  const struct timespec nap = {0, 2000000};
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
    if (does_sleep) nanosleep(&nap, NULL);
}

static void serve(int does_sleep) {
  const int me = shmem_my_pe();
  const int last = shmem_n_pes() - 1;
  long* words = shmem_calloc(4, sizeof(long));
  long* many = shmem_calloc(1 << 16, sizeof(long));
  if (me == last) {
    look_until(&words[0], 1, does_sleep);
    __atomic_store_n(&words[1], 2, __ATOMIC_RELEASE);
    look_until(&words[2], 3, does_sleep);
  } else if (me == 0) {
    long* source = malloc((1 << 16) * sizeof(long));
    for (long i = 0; i < 1 << 16; ++i) source[i] = i;
    shmem_long_put(many, source, 1 << 16, last);
    shmem_quiet();
    shmem_long_p(&words[0], 1, last);
    while (shmem_long_g(&words[1], last) != 2) {
    }
    memset(source, 0, (1 << 16) * sizeof(long));
    shmem_long_get(source, many, 1 << 16, last);
    for (long i = 0; i < 1 << 16; ++i) check(source[i] == i, "a wrong value came back");
    check(shmem_long_atomic_fetch_add(&words[3], 5, last) == 0, "a wrong value was fetched");
    check(shmem_long_atomic_fetch(&words[3], last) == 5, "a wrong sum");
    shmem_long_p(&words[2], 3, last);
    shmem_quiet();
    free(source);
  }
  shmem_barrier_all();
}

static int local_size(void) {
  const char* text = getenv("LOCAL_WORLD_SIZE");
  return text == NULL ? shmem_n_pes() : atoi(text);
}

static void pointers(void) {
  const int me = shmem_my_pe();
  long* word = shmem_malloc(sizeof *word);
  *word = me;
  shmem_barrier_all();
  int reached = 0;
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    long* there = shmem_ptr(word, pe);
    if (there == NULL) continue;
    ++reached;
    check(*there == pe, "shmem_ptr leads elsewhere");
  }
  check(reached == local_size(), "shmem_ptr reaches another number of PEs than the host has");
  check(shmem_team_n_pes(SHMEM_TEAM_SHARED) == local_size(),
        "SHMEM_TEAM_SHARED has another number of PEs than the host has");
  for (int pe = 0; pe < shmem_team_n_pes(SHMEM_TEAM_SHARED); ++pe)
    check(shmem_ptr(word, shmem_team_translate_pe(SHMEM_TEAM_SHARED, pe, SHMEM_TEAM_WORLD)) != NULL,
          "a member of SHMEM_TEAM_SHARED is not reached by shmem_ptr");
  shmem_barrier_all();
}

static void statics(void) {
  const int me = shmem_my_pe();
  const int size = shmem_n_pes();
  const int next = (me + 1) % size;
  shmem_long_p(&variable, me, next);
  shmem_long_p(&zeroed[999], me + 1, next);
  shmem_barrier_all();
  check(variable == (me + size - 1) % size, "a variable was not put");
  check(zeroed[999] == (me + size - 1) % size + 1, "a zeroed variable was not put");
  check(shmem_long_g(&variable, next) == me, "a variable was not got");
  shmem_barrier_all();
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  shmem_init();
  if (strcmp(what, "compute") == 0) {
    serve(0);
  } else if (strcmp(what, "sleep") == 0) {
    serve(1);
  } else if (strcmp(what, "pointers") == 0) {
    pointers();
  } else if (strcmp(what, "statics") == 0) {
    statics();
  } else if (strcmp(what, "rejoin") == 0) {
    for (int round = 0; round < 3; ++round) {
      pointers();
      shmem_finalize();
      shmem_init();
    }
    statics();
  } else {
    fprintf(stderr, "far: there is no case \"%s\"\n", what);
    return 2;
  }
  shmem_finalize();
  return failures == 0 ? 0 : 1;
}
