// SPDX-License-Identifier: Apache-2.0
// What the parts of oshm_bench share: the state of the run, and the two ways to measure.
//
// The program is written to OpenSHMEM 1.4 and uses the newer interfaces where the header it is
// compiled with declares version 1.5 or later. It includes nothing of memspan's but <shmem.h>, so
// that the same files measure any implementation.
#pragma once

#include <shmem.h>
#include <stddef.h>
#include <stdint.h>

#if defined(SHMEM_MAJOR_VERSION) && defined(SHMEM_MINOR_VERSION) && \
    (SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5)
#define BENCH_API_15 1
#else
#define BENCH_API_15 0
#endif

// Either can be forced with -D where an implementation has only half of 1.5.
#ifndef BENCH_TEAMS
#define BENCH_TEAMS BENCH_API_15
#endif
#ifndef BENCH_SIGNAL
#define BENCH_SIGNAL BENCH_API_15
#endif

enum { kMaxRepetitions = 1001, kMaxSet = 8, kCollectiveMax = 1 << 20 };

// Everything that main() sets up and the operations use. One global object, because an operation
// is timed to the nanosecond and the profile of a call must be that of the library alone.
struct bench {
  int me, npes;
  int repetitions;
  double least_time;   // seconds that one repetition lasts at least
  size_t max_bytes;    // the largest message of a bandwidth sweep
  int private_local;   // the local side of put and get is malloc memory
  const char* groups;  // a comma-separated list; NULL means all
  long errors;         // wrong bytes, wrong sums

  char *source, *destination;  // symmetric, max_bytes each
  char* local;                 // `source`, or private memory
  long *flag, *word, *answer;  // symmetric words, each alone in its cache lines
  double* slot;                // symmetric, one per PE
  long sequence;               // of flags: the same at PE 0 and PE 1
};
extern struct bench bench;

// What a figure is printed as; half a round is the time of a message one way.
enum unit { kLatency, kHalfRound, kBandwidth, kRate };

// Does `count` operations on messages of `size` bytes.
typedef void (*operation)(size_t size, long count);

struct figure {
  const char* name;
  size_t size;
  enum unit unit;
  operation run;  // NULL: cannot be measured here, which is said in a remark
  int active;     // how many PEs run it in measure_together(); 0 means all
};

// Both measure `count` figures (at most kMaxSet) in turn: the first repetition of each, then the
// second of each, and so on, so that figures of one set saw the same state of the machine.
// Collective.
//   alone:    PE 0 works, the others wait in a barrier;
//   together: PEs 0 .. active-1 work, the time is that of the slowest.
void measure_alone(const struct figure* figures, int count);
void measure_together(const struct figure* figures, int count);

double now(void);
double slowest(double seconds);  // the longest of every PE's, at PE 0; collective
long agree(long value);          // PE 0's value, at every PE; collective
int wanted(const char* group);
void* need(void* memory, const char* what);
void* lone_word(void);  // symmetric, zero, in cache lines of its own; collective

// Prints one figure out of n samples (sorts them); only PE 0 prints.
void report(const char* name, size_t size, const char* unit, double* samples, int n);

// The groups: one function each, called by all PEs if the group is wanted.
void bare_setup(void);
void latency_group(void);
void add_group(void);
void atomics_group(void);
void put_group(void);
void get_group(void);
void nbi_group(void);
void rate_group(void);
void flag_group(void);
void data_group(void);
void ring_group(void);
void barrier_group(void);
void allreduce_group(void);
void collectives_group(void);

// The same without the library: loads, stores and atomics through the pointers that shmem_ptr()
// gives. NULL where it gives none.
operation bare_store(void);
operation bare_load(void);
operation bare_fetch_add(void);
// A put or a get by one way to copy of kBareCopies: libc, movsb, avx, nt. Null where the machine
// has no such copy, or not of that size.
enum { kBareCopies = 4 };
operation bare_copy(int is_put, int copy, size_t size);
operation bare_pingpong(void);
