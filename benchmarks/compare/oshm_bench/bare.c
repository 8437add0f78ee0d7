// SPDX-License-Identifier: Apache-2.0
// What the machine does without the library: loads, stores and C11 atomics on the peer's memory,
// through the pointers that shmem_ptr() gives. No library call is inside a loop.
//
// PE 0 and PE 1 each own `line`, which the other writes; a message is one store.
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "bench.h"

static _Atomic long *my_line, *peer_line, *peer_word;
static char* peer_destination;
static int reachable;  // the same at every PE
static long line_sequence;
static volatile long sink;

void bare_setup(void) {
  long* line = lone_word();
  long* word = lone_word();
  int in_pair = bench.me < 2;
  int peer = 1 - bench.me;
  if (in_pair) {
    my_line = (_Atomic long*)line;
    peer_line = (_Atomic long*)shmem_ptr(line, peer);
    peer_word = (_Atomic long*)shmem_ptr(word, peer);
    peer_destination = shmem_ptr(bench.destination, peer);
  }
  int missing = in_pair && (!peer_line || !peer_word || !peer_destination);
  reachable = !agree(slowest(missing) > 0);
  if (!reachable && bench.me == 0) printf("# bare_*: shmem_ptr gives no pointer\n");
}

static void run_store(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) atomic_store_explicit(peer_word, i, memory_order_release);
}

static void run_load(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) (void)atomic_load_explicit(peer_word, memory_order_acquire);
}

static void run_fetch_add(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++)
    sink = atomic_fetch_add_explicit(peer_word, 3, memory_order_seq_cst);
}

// The ways to copy that the machine has, each a loop of its own, so that none is chosen in it.
static void copy_libc(void* to, const void* from, size_t size) {
  memcpy(to, from, size);
}

#ifdef __x86_64__
static void copy_movsb(void* to, const void* from, size_t size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

// A cache line at a time.
#define VECTOR_COPY(name, store)                                                              \
  __attribute__((target("avx2"))) static void name(void* to, const void* from, size_t size) { \
    __m256i* d = to;                                                                          \
    const __m256i* s = from;                                                                  \
    for (size_t i = 0; i < size / sizeof *s; i += 2) {                                        \
      const __m256i a = _mm256_loadu_si256(s + i), b = _mm256_loadu_si256(s + i + 1);         \
      store(d + i, a);                                                                        \
      store(d + i + 1, b);                                                                    \
    }                                                                                         \
  }
VECTOR_COPY(copy_avx, _mm256_storeu_si256)
VECTOR_COPY(copy_lines_past_caches, _mm256_stream_si256)

static void copy_nt(void* to, const void* from, size_t size) {
  copy_lines_past_caches(to, from, size);
  _mm_sfence();
}
#endif

#define COPIES(copy)                                                      \
  static void put_##copy(size_t size, long count) {                       \
    for (long i = 0; i < count; i++) {                                    \
      copy(peer_destination, bench.local, size);                          \
      atomic_signal_fence(memory_order_seq_cst); /* every copy is made */ \
    }                                                                     \
  }                                                                       \
  static void get_##copy(size_t size, long count) {                       \
    for (long i = 0; i < count; i++) {                                    \
      copy(bench.local, peer_destination, size);                          \
      atomic_signal_fence(memory_order_seq_cst);                          \
    }                                                                     \
  }
COPIES(copy_libc)
#ifdef __x86_64__
COPIES(copy_movsb)
COPIES(copy_avx)
COPIES(copy_nt)
#endif

// Yields only when the peer has been silent for far longer than a cache line takes: both may have
// been put on one core.
static void await(long value) {
  enum { kPatience = 1 << 16 };
  for (long spins = 0; atomic_load_explicit(my_line, memory_order_acquire) != value;)
    if (++spins == kPatience) {
      sched_yield();
      spins = 0;
    }
}

static void run_pingpong(size_t size, long count) {
  (void)size;
  for (long i = 0; i < count; i++) {
    long value = ++line_sequence;
    if (bench.me == 1) await(value);
    atomic_store_explicit(peer_line, value, memory_order_release);
    if (bench.me == 0) await(value);
  }
}

operation bare_store(void) {
  return reachable ? run_store : NULL;
}
operation bare_load(void) {
  return reachable ? run_load : NULL;
}
operation bare_fetch_add(void) {
  return reachable ? run_fetch_add : NULL;
}
operation bare_copy(int is_put, int copy, size_t size) {
#ifdef __x86_64__
  static const operation ways[2][kBareCopies] = {
      {get_copy_libc, get_copy_movsb, get_copy_avx, get_copy_nt},
      {put_copy_libc, put_copy_movsb, put_copy_avx, put_copy_nt}};
  enum { kMovsb = 1 };
  // The vectors are whole lines here.
  if (copy > kMovsb && (size % 64 != 0 || !__builtin_cpu_supports("avx2"))) return NULL;
#else
  static const operation ways[2][kBareCopies] = {{get_copy_libc}, {put_copy_libc}};
  (void)size;
#endif
  return reachable ? ways[is_put][copy] : NULL;
}
operation bare_pingpong(void) {
  return reachable ? run_pingpong : NULL;
}
