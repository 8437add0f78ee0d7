// SPDX-License-Identifier: Apache-2.0
// The clock, the two ways to measure a set of figures, and how a figure is printed.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

static const long kMostOperations = 1L << 24;

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int wanted(const char* group) {
  if (!bench.groups) return 1;
  size_t n = strlen(group);
  for (const char* p = bench.groups; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
    if (!strncmp(p, group, n) && (p[n] == ',' || p[n] == '\0')) return 1;
  return 0;
}

void* need(void* memory, const char* what) {
  if (!memory) {
    fprintf(stderr, "oshm_bench: PE %d: no memory for %s\n", bench.me, what);
    shmem_global_exit(1);
  }
  return memory;
}

void* lone_word(void) {
  void* word = need(shmem_align(128, 256), "a word");
  memset(word, 0, 256);
  return word;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

void report(const char* name, size_t size, const char* unit, double* samples, int n) {
  if (bench.me != 0) return;
  qsort(samples, (size_t)n, sizeof *samples, by_value);
  double median = n % 2 ? samples[n / 2] : 0.5 * (samples[n / 2 - 1] + samples[n / 2]);
  printf("%-26s %10zu %14.5f %-6s %14.5f %14.5f %d\n", name, size, median, unit, samples[0],
         samples[n - 1], n);
  fflush(stdout);
}

double slowest(double seconds) {
  double worst = 0;
  shmem_double_p(&bench.slot[bench.me], seconds, 0);
  shmem_barrier_all();
  for (int pe = 0; bench.me == 0 && pe < bench.npes; pe++)
    if (bench.slot[pe] > worst) worst = bench.slot[pe];
  return worst;
}

long agree(long value) {
  if (bench.me == 0)
    for (int pe = 0; pe < bench.npes; pe++) shmem_long_p(bench.answer, value, pe);
  shmem_barrier_all();
  long agreed = *(volatile long*)bench.answer;
  shmem_barrier_all();  // before PE 0 may write the next one
  return agreed;
}

// The next number of operations to try, or 0 when `seconds` was long enough.
static long growth(double seconds, long operations) {
  if (seconds >= bench.least_time || operations >= kMostOperations) return 0;
  return seconds < bench.least_time / 16 ? 8 : 2;
}

// The caches are as this operation leaves them, not another one.
static double time_alone(const struct figure* figure, long operations) {
  figure->run(figure->size, 1);
  double start = now();
  figure->run(figure->size, operations);
  return now() - start;
}

static double time_together(const struct figure* figure, long operations) {
  int active = bench.me < (figure->active ? figure->active : bench.npes);
  shmem_barrier_all();
  double start = now();
  if (active) figure->run(figure->size, operations);
  return slowest(active ? now() - start : 0);
}

// How many operations fill a repetition; finding out is the warm-up, too.
static long calibrate_alone(const struct figure* figure) {
  long operations = 1;
  for (long grow; (grow = growth(time_alone(figure, operations), operations)) != 0;)
    operations *= grow;
  return operations;
}

static long calibrate_together(const struct figure* figure) {
  long operations = 1;
  for (long grow; (grow = agree(growth(time_together(figure, operations), operations))) != 0;)
    operations *= grow;
  return operations;
}

static double convert(const struct figure* figure, double seconds, long operations) {
  double each = seconds / (double)operations;
  switch (figure->unit) {
    case kBandwidth:
      return (double)figure->size / each * 1e-6;
    case kRate:
      return 1e-6 / each;
    case kHalfRound:
      return each * 0.5e6;
    default:
      return each * 1e6;
  }
}

static void report_figure(const struct figure* figure, double* samples) {
  static const char* const names[] = {"us", "us", "MB/s", "Mop/s"};
  if (figure->run)
    report(figure->name, figure->size, names[figure->unit], samples, bench.repetitions);
  else if (bench.me == 0)
    printf("# %s %zu: not available\n", figure->name, figure->size);
}

static double samples[kMaxSet][kMaxRepetitions];

void measure_alone(const struct figure* figures, int count) {
  shmem_barrier_all();
  if (bench.me == 0) {
    long operations[kMaxSet];
    for (int i = 0; i < count; i++)
      operations[i] = figures[i].run ? calibrate_alone(&figures[i]) : 0;
    // Back and forth: copies after one past the caches take longer for a while, so the same figure
    // must not always come after it.
    for (int r = 0; r < bench.repetitions; r++)
      for (int k = 0; k < count; k++) {
        int i = r % 2 == 0 ? k : count - 1 - k;
        if (figures[i].run)
          samples[i][r] =
              convert(&figures[i], time_alone(&figures[i], operations[i]), operations[i]);
      }
    for (int i = 0; i < count; i++) report_figure(&figures[i], samples[i]);
  }
  shmem_barrier_all();
}

void measure_together(const struct figure* figures, int count) {
  long operations[kMaxSet];
  for (int i = 0; i < count; i++)
    operations[i] = figures[i].run ? calibrate_together(&figures[i]) : 0;
  for (int r = 0; r < bench.repetitions; r++)
    for (int i = 0; i < count; i++)
      if (figures[i].run)
        samples[i][r] =
            convert(&figures[i], time_together(&figures[i], operations[i]), operations[i]);
  shmem_barrier_all();
  for (int i = 0; i < count; i++) report_figure(&figures[i], samples[i]);
}
