/* SPDX-License-Identifier: Apache-2.0
 * pi: the integral of 4 / (1 + x^2) from 0 to 1, by the midpoint rule. Every PE adds up its share
 * of the intervals, and one reduction adds the PEs' sums.
 *
 *   oshrun -n 4 ./pi [intervals]
 */
#include "example.h"

#include <float.h>

static const double kPi = 3.14159265358979323846;

/* The sum over a range of intervals of `width`, without the factor `width`. */
static double sum_of(Range range, double width) {
  double sum = 0;
  for (long i = range.first; i < range.end; ++i) {
    double x = ((double)i + 0.5) * width;
    sum += 4 / (1 + x * x);
  }
  return sum;
}

/* The midpoint rule is off by at most width^2 / 24 times the largest second derivative, which is 8;
 * each of the additions rounds a sum that is, times the width, no more than pi. */
static double largest_error(double intervals) {
  double width = 1 / intervals;
  return width * width / 3 + intervals * kPi * DBL_EPSILON;
}

int main(int argc, char** argv) {
  shmem_init();
  Argument intervals = {"intervals", 1, 100000000000, 1000000};
  read_arguments("pi", argc, argv, &intervals, 1);
  double width = 1 / (double)intervals.value;

  /* What a reduction reads and writes is symmetric memory. */
  double* part = symmetric("pi", shmem_malloc(sizeof *part));
  double* whole = symmetric("pi", shmem_malloc(sizeof *whole));
  double start = seconds_now();
  *part = sum_of(share(intervals.value, shmem_n_pes(), shmem_my_pe()), width);
  /* Collective: all PEs of the team call it, and all get the sum. SHMEM_TEAM_WORLD is everybody. */
  if (shmem_double_sum_reduce(SHMEM_TEAM_WORLD, whole, part, 1) != 0)
    shmem_global_exit(kExitFailed);
  double seconds = seconds_now() - start;

  double pi = *whole * width;
  double error = pi > kPi ? pi - kPi : kPi - pi;
  long wrong = !(error <= largest_error((double)intervals.value)); /* NaN is wrong, too */
  shmem_free(whole);
  shmem_free(part);
  return finish("pi", seconds, wrong, "%ld intervals, %.15f, off by %.1e", intervals.value, pi,
                error);
}
