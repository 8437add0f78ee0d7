/* SPDX-License-Identifier: Apache-2.0
 * What PEs of other hosts get while a PE makes no call, and what that costs; two PEs, each on a
 * host of its own. The first argument names a case:
 *
 * compute   PE 1 computes for some seconds without a call; PE 0 prints the quartiles of its gets
 *
 * barrier   PE 1 is in a barrier all the time; PE 0 prints the same
 *
 * idle      both sleep; each prints how much of a core it used
 *
 * wait      PE 1 waits for a word that PE 0 stores in the end; each prints how much of a core it
 * used, over six seconds: a wait's first 10 ms are awake, half a percent of two seconds
 *
 * kill      PE 0 is killed right after its quiet; PE 1, in no call, prints whether all is there
 */
#include <errno.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kGets = 100, kWords = 1 << 17 };

static const double kSeconds = 2;

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void nap(double seconds) {
  struct timespec rest = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a;
  const double right = *(const double*)b;
  return (left > right) - (left < right);
}

static void ask(long* word, int computes) {
  if (shmem_my_pe() == 1 && !computes) return;
  if (shmem_my_pe() == 1) {
    volatile double sum = 0;
    for (const double end = now(CLOCK_MONOTONIC) + kSeconds; now(CLOCK_MONOTONIC) < end;)
      for (int i = 0; i < 100000; ++i) sum = sum + i;
    return;
  }
  static double took[kGets];
  nap(0.2);
  for (int i = 0; i < kGets; ++i) {
    const double start = now(CLOCK_MONOTONIC);
    if (shmem_long_g(word, 1) != 1) shmem_global_exit(1);
    took[i] = now(CLOCK_MONOTONIC) - start;
    nap(0.01);
  }
  qsort(took, kGets, sizeof *took, compare);
  printf("gets %.6f %.6f %.6f s\n", took[kGets / 4], took[kGets / 2], took[3 * kGets / 4]);
}

static void print_share(double wall, double cpu) {
  printf("core %d %.4f %%\n", shmem_my_pe(),
         100 * (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (now(CLOCK_MONOTONIC) - wall));
}

static void be_idle(long* word, int waits) {
  // Connections are there.
  shmem_long_p(word, 5, 1 - shmem_my_pe());
  shmem_barrier_all();
  const double wall = now(CLOCK_MONOTONIC);
  const double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  if (waits && shmem_my_pe() == 1)
    shmem_long_wait_until(word, SHMEM_CMP_EQ, 6);
  else
    nap(waits ? 3 * kSeconds : kSeconds);
  print_share(wall, cpu);
  if (waits && shmem_my_pe() == 0) shmem_long_p(word, 6, 1);
}

static void be_killed(long* word) {
  long* many = shmem_calloc(kWords, sizeof *many);
  *word = getpid();
  shmem_barrier_all();
  const pid_t other = (pid_t)shmem_long_g(word, 0);
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    long* source = malloc(kWords * sizeof *source);
    for (long i = 0; i < kWords; ++i) source[i] = i + 1;
    shmem_long_put(many, source, kWords, 1);
    shmem_quiet();
    raise(SIGKILL);
  }
  while (kill(other, 0) == 0) nap(0.001);
  long missing = 0;
  for (long i = 0; i < kWords; ++i)
    if (*(volatile long*)&many[i] != i + 1) ++missing;
  printf("missing %ld\n", missing);
  fflush(stdout);
  _exit(0);
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  shmem_init();
  if (shmem_n_pes() != 2) {
    fprintf(stderr, "hosts_progress: needs 2 PEs\n");
    shmem_global_exit(2);
  }
  long* word = shmem_malloc(sizeof *word);
  *word = 1;
  shmem_barrier_all();
  if (strcmp(name, "compute") == 0) {
    ask(word, 1);
  } else if (strcmp(name, "barrier") == 0) {
    ask(word, 0);
    shmem_barrier_all();
  } else if (strcmp(name, "idle") == 0) {
    be_idle(word, 0);
  } else if (strcmp(name, "wait") == 0) {
    be_idle(word, 1);
  } else if (strcmp(name, "kill") == 0) {
    be_killed(word);
  } else {
    fprintf(stderr, "hosts_progress: no case \"%s\"\n", name);
    shmem_global_exit(2);
  }
  shmem_finalize();
  return 0;
}
