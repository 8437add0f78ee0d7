/* SPDX-License-Identifier: Apache-2.0
 * Times of rounds, in microseconds. */
#ifndef MEMSPAN_BENCHMARKS_HOSTS_ROUNDS_H
#define MEMSPAN_BENCHMARKS_HOSTS_ROUNDS_H

#include <stdlib.h>
#include <time.h>

enum { kMostRounds = 1000 };

static inline double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static inline int compare_rounds(const void* a, const void* b) {
  const double left = *(const double*)a;
  const double right = *(const double*)b;
  return (left > right) - (left < right);
}
/* Sorts them. */
static inline double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare_rounds);
  return values[count / 2];
}

#endif
