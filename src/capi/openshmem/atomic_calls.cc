// SPDX-License-Identifier: Apache-2.0
// Atomics, with their names of earlier versions. A fetching atomic returns with its result, so the
// _nbi forms only store it.
#include "capi/fast_atomic.h"

#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"

using namespace memspan::capi;
using memspan::AtomicKind;

// One that fetches, and one that only changes the word. `parameters` is what comes after the
// context and before `pe`; the rest is target, operand and, for those that fetch, compare.
#define MEMSPAN_FETCHING(kind, function, type, parameters, ...)                      \
  MEMSPAN_IN_CONTEXT(                                                                \
      type, function, parameters,                                                    \
      return fetch_atomic<AtomicKind::kind, type>(call, __VA_ARGS__, peer, context)) \
  MEMSPAN_IN_CONTEXT(                                                                \
      void, function##_nbi, (type * fetch, MEMSPAN_UNPACK parameters),               \
      *fetch = fetch_atomic<AtomicKind::kind, type>(call, __VA_ARGS__, peer, context))
#define MEMSPAN_CHANGING(kind, function, type, parameters, ...) \
  MEMSPAN_IN_CONTEXT(void, function, parameters,                \
                     change_atomic<AtomicKind::kind, type>(call, __VA_ARGS__, peer, context))

// With another name of old, which knows no contexts.
#define MEMSPAN_FETCHING_TOO(kind, function, old, type, parameters, ...)         \
  MEMSPAN_FETCHING(kind, function, type, parameters, __VA_ARGS__)                \
  MEMSPAN_PROFILED(type, old, (MEMSPAN_UNPACK parameters, int pe)) {             \
    return fetch_atomic<AtomicKind::kind, type>("shmem_" #old, __VA_ARGS__, pe); \
  }
#define MEMSPAN_CHANGING_TOO(kind, function, old, type, parameters, ...)   \
  MEMSPAN_CHANGING(kind, function, type, parameters, __VA_ARGS__)          \
  MEMSPAN_PROFILED(void, old, (MEMSPAN_UNPACK parameters, int pe)) {       \
    change_atomic<AtomicKind::kind, type>("shmem_" #old, __VA_ARGS__, pe); \
  }

#define MEMSPAN_ATOMIC_EXTENDED(name, type)                                                        \
  MEMSPAN_FETCHING_TOO(kFetch, name##_atomic_fetch, name##_fetch, type, (const type* source),      \
                       source, 0, 0)                                                               \
  MEMSPAN_CHANGING_TOO(kSet, name##_atomic_set, name##_set, type, (type * dest, type value), dest, \
                       value)                                                                      \
  MEMSPAN_FETCHING_TOO(kSwap, name##_atomic_swap, name##_swap, type, (type * dest, type value),    \
                       dest, value, 0)
#define MEMSPAN_ATOMIC_STANDARD(name, type)                                                        \
  MEMSPAN_FETCHING_TOO(kCompareSwap, name##_atomic_compare_swap, name##_cswap, type,               \
                       (type * dest, type cond, type value), dest, value, cond)                    \
  MEMSPAN_FETCHING_TOO(kAdd, name##_atomic_fetch_inc, name##_finc, type, (type * dest), dest, 1,   \
                       0)                                                                          \
  MEMSPAN_FETCHING_TOO(kAdd, name##_atomic_fetch_add, name##_fadd, type,                           \
                       (type * dest, type value), dest, value, 0)                                  \
  MEMSPAN_CHANGING_TOO(kAdd, name##_atomic_inc, name##_inc, type, (type * dest), dest, 1)          \
  MEMSPAN_CHANGING_TOO(kAdd, name##_atomic_add, name##_add, type, (type * dest, type value), dest, \
                       value)
#define MEMSPAN_ATOMIC_BITWISE(name, type)                                                         \
  MEMSPAN_FETCHING(kAnd, name##_atomic_fetch_and, type, (type * dest, type value), dest, value, 0) \
  MEMSPAN_FETCHING(kOr, name##_atomic_fetch_or, type, (type * dest, type value), dest, value, 0)   \
  MEMSPAN_FETCHING(kXor, name##_atomic_fetch_xor, type, (type * dest, type value), dest, value, 0) \
  MEMSPAN_CHANGING(kAnd, name##_atomic_and, type, (type * dest, type value), dest, value)          \
  MEMSPAN_CHANGING(kOr, name##_atomic_or, type, (type * dest, type value), dest, value)            \
  MEMSPAN_CHANGING(kXor, name##_atomic_xor, type, (type * dest, type value), dest, value)

MEMSPAN_EXTENDED_AMO_TYPES(MEMSPAN_ATOMIC_EXTENDED)
MEMSPAN_STANDARD_AMO_TYPES(MEMSPAN_ATOMIC_STANDARD)
MEMSPAN_BITWISE_AMO_TYPES(MEMSPAN_ATOMIC_BITWISE)
