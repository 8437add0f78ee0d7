/* SPDX-License-Identifier: Apache-2.0
 * What the examples share and what is not OpenSHMEM's own: arguments, memory that must be there,
 * time, shares of work, random numbers and the line at the end. Include it first. */
#ifndef MEMSPAN_EXAMPLES_OPENSHMEM_EXAMPLE_H
#define MEMSPAN_EXAMPLES_OPENSHMEM_EXAMPLE_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime, under -std=c11 too */
#endif
#include <errno.h>
#include <shmem.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kExitFailed = 1, kExitWrongUse = 2 };

/* Ends the program on all PEs, with one line from PE 0. For what every PE finds out by itself: all
 * must call it. */
_Noreturn static inline void leave(const char* program, int code, const char* why) {
  if (shmem_my_pe() == 0) fprintf(stderr, "%s: %s\n", program, why);
  shmem_barrier_all();
  shmem_finalize();
  exit(code);
}

/* Memory that all PEs have, or none: shmem_malloc returns NULL to all of them or to nobody. */
static inline void* symmetric(const char* program, void* memory) {
  if (memory == NULL)
    leave(program, kExitFailed, "the symmetric heap is too small (SHMEM_SYMMETRIC_SIZE)");
  return memory;
}

/* Memory of this PE alone, which it may lack alone: then it ends the job for all. */
static inline void* local(const char* program, void* memory) {
  if (memory == NULL) {
    fprintf(stderr, "%s: PE %d has no memory left\n", program, shmem_my_pe());
    shmem_global_exit(kExitFailed);
  }
  return memory;
}

/* A number that may stand on the command line. */
typedef struct {
  const char* name;
  long least, most;
  long value; /* the default before read_arguments(), the user's after it */
} Argument;

/* Fills `arguments` in their order from the command line. Leaves when a word is no number, out of
 * its limits, or one too many. Every PE has the same command line, so all leave or none. */
static inline void read_arguments(const char* program, int argc, char** argv, Argument* arguments,
                                  int count) {
  char why[512], usage[256] = "";
  int used = 0;
  for (int i = 0; i < count; ++i)
    used += snprintf(usage + used, sizeof usage - (size_t)used, " [%s", arguments[i].name);
  for (int i = 0; i < count; ++i) used += snprintf(usage + used, sizeof usage - (size_t)used, "]");
  if (argc - 1 > count) {
    snprintf(why, sizeof why, "\"%.80s\" is one argument too many; usage: %s%s", argv[count + 1],
             program, usage);
    leave(program, kExitWrongUse, why);
  }
  for (int i = 0; i < argc - 1; ++i) {
    Argument* argument = &arguments[i];
    const char* text = argv[i + 1];
    char* end;
    errno = 0;
    argument->value = strtol(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && argument->value >= argument->least &&
        argument->value <= argument->most)
      continue;
    snprintf(why, sizeof why, "%s is \"%.80s\", allowed are %ld to %ld; usage: %s%s",
             argument->name, text, argument->least, argument->most, program, usage);
    leave(program, kExitWrongUse, why);
  }
}

static inline double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Numbers from `first` up to, and without, `end`. */
typedef struct {
  long first, end;
} Range;

/* The numbers 0 to total - 1, cut into `parts` ranges whose lengths differ by one at most. */
static inline Range share(long total, int parts, int part) {
  long each = total / parts, rest = total % parts;
  long first = part * each + (part < rest ? part : rest);
  return (Range){first, first + each + (part < rest)};
}

/* The i-th of a fixed sequence of random numbers (SplitMix64). Any PE can make any of them, and so
 * check what others did with theirs. */
static inline uint64_t random_number(uint64_t i) {
  uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Adds up what the PEs found `wrong`, prints the job's line on PE 0 and leaves OpenSHMEM. Returns
 * the program's exit code, the same on all PEs. */
#ifdef __GNUC__
__attribute__((format(printf, 4, 5)))
#endif
static inline int
finish(const char* program, double seconds, long wrong, const char* format, ...) {
  long* sum = symmetric(program, shmem_malloc(2 * sizeof *sum));
  sum[0] = wrong;
  if (shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum[1], &sum[0], 1) != 0)
    shmem_global_exit(kExitFailed);
  wrong = sum[1];
  if (shmem_my_pe() == 0) {
    va_list list;
    va_start(list, format);
    printf("%s: %d PE%s, ", program, shmem_n_pes(), shmem_n_pes() == 1 ? "" : "s");
    vprintf(format, list);
    printf(", %.3f s, ", seconds);
    if (wrong == 0) printf("PASS\n");
    if (wrong != 0) printf("FAIL: %ld wrong\n", wrong);
    va_end(list);
    fflush(stdout); /* before the others may leave: a launcher may end a job at the first failure */
  }
  shmem_free(sum); /* all meet in it */
  shmem_finalize();
  return wrong == 0 ? 0 : kExitFailed;
}

#endif
