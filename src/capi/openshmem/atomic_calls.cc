// SPDX-License-Identifier: Apache-2.0
// Atomics. A fetching atomic returns with its result, so the _nbi forms only store it.
#include "capi/fast_atomic.h"

#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"

using namespace memspan::capi;
using memspan::AtomicKind;

// A fetching atomic in its four forms. `parameters` and `arguments` are what comes after the
// context and before `pe`; arguments are target, operand, compare.
#define MEMSPAN_UNPACK(...) __VA_ARGS__
#define MEMSPAN_FETCHING(kind, function, type, parameters, arguments)                              \
  MEMSPAN_FLAT_PROFILED(type, function, (MEMSPAN_UNPACK parameters, int pe)) {                     \
    return fetch_atomic<AtomicKind::kind, type>("shmem_" #function, MEMSPAN_UNPACK arguments, pe); \
  }                                                                                                \
  MEMSPAN_FLAT_PROFILED(type, ctx_##function,                                                      \
                        (shmem_ctx_t ctx, MEMSPAN_UNPACK parameters, int pe)) {                    \
    constexpr const char* kCall = "shmem_ctx_" #function;                                          \
    return fetch_atomic<AtomicKind::kind, type>(kCall, MEMSPAN_UNPACK arguments,                   \
                                                peer_of(kCall, ctx, pe), number_of(ctx));          \
  }                                                                                                \
  MEMSPAN_FLAT_PROFILED(void, function##_nbi, (type * fetch, MEMSPAN_UNPACK parameters, int pe)) { \
    *fetch = fetch_atomic<AtomicKind::kind, type>("shmem_" #function "_nbi",                       \
                                                  MEMSPAN_UNPACK arguments, pe);                   \
  }                                                                                                \
  MEMSPAN_FLAT_PROFILED(void, ctx_##function##_nbi,                                                \
                        (shmem_ctx_t ctx, type * fetch, MEMSPAN_UNPACK parameters, int pe)) {      \
    constexpr const char* kCall = "shmem_ctx_" #function "_nbi";                                   \
    *fetch = fetch_atomic<AtomicKind::kind, type>(kCall, MEMSPAN_UNPACK arguments,                 \
                                                  peer_of(kCall, ctx, pe), number_of(ctx));        \
  }
// One that only changes the word; arguments are target, operand.
#define MEMSPAN_CHANGING(kind, function, type, parameters, arguments)                        \
  MEMSPAN_FLAT_PROFILED(void, function, (MEMSPAN_UNPACK parameters, int pe)) {               \
    change_atomic<AtomicKind::kind, type>("shmem_" #function, MEMSPAN_UNPACK arguments, pe); \
  }                                                                                          \
  MEMSPAN_FLAT_PROFILED(void, ctx_##function,                                                \
                        (shmem_ctx_t ctx, MEMSPAN_UNPACK parameters, int pe)) {              \
    constexpr const char* kCall = "shmem_ctx_" #function;                                    \
    change_atomic<AtomicKind::kind, type>(kCall, MEMSPAN_UNPACK arguments,                   \
                                          peer_of(kCall, ctx, pe), number_of(ctx));          \
  }

#define MEMSPAN_ATOMIC_EXTENDED(name, type)                                                 \
  MEMSPAN_FETCHING(kFetch, name##_atomic_fetch, type, (const type* source),                 \
                   (source, static_cast<type>(0), static_cast<type>(0)))                    \
  MEMSPAN_CHANGING(kSet, name##_atomic_set, type, (type * dest, type value), (dest, value)) \
  MEMSPAN_FETCHING(kSwap, name##_atomic_swap, type, (type * dest, type value),              \
                   (dest, value, static_cast<type>(0)))
#define MEMSPAN_ATOMIC_STANDARD(name, type)                                                    \
  MEMSPAN_FETCHING(kCompareSwap, name##_atomic_compare_swap, type,                             \
                   (type * dest, type cond, type value), (dest, value, cond))                  \
  MEMSPAN_FETCHING(kAdd, name##_atomic_fetch_inc, type, (type * dest),                         \
                   (dest, static_cast<type>(1), static_cast<type>(0)))                         \
  MEMSPAN_FETCHING(kAdd, name##_atomic_fetch_add, type, (type * dest, type value),             \
                   (dest, value, static_cast<type>(0)))                                        \
  MEMSPAN_CHANGING(kAdd, name##_atomic_inc, type, (type * dest), (dest, static_cast<type>(1))) \
  MEMSPAN_CHANGING(kAdd, name##_atomic_add, type, (type * dest, type value), (dest, value))
#define MEMSPAN_ATOMIC_BITWISE(name, type)                                                  \
  MEMSPAN_FETCHING(kAnd, name##_atomic_fetch_and, type, (type * dest, type value),          \
                   (dest, value, static_cast<type>(0)))                                     \
  MEMSPAN_FETCHING(kOr, name##_atomic_fetch_or, type, (type * dest, type value),            \
                   (dest, value, static_cast<type>(0)))                                     \
  MEMSPAN_FETCHING(kXor, name##_atomic_fetch_xor, type, (type * dest, type value),          \
                   (dest, value, static_cast<type>(0)))                                     \
  MEMSPAN_CHANGING(kAnd, name##_atomic_and, type, (type * dest, type value), (dest, value)) \
  MEMSPAN_CHANGING(kOr, name##_atomic_or, type, (type * dest, type value), (dest, value))   \
  MEMSPAN_CHANGING(kXor, name##_atomic_xor, type, (type * dest, type value), (dest, value))

MEMSPAN_EXTENDED_AMO_TYPES(MEMSPAN_ATOMIC_EXTENDED)
MEMSPAN_STANDARD_AMO_TYPES(MEMSPAN_ATOMIC_STANDARD)
MEMSPAN_BITWISE_AMO_TYPES(MEMSPAN_ATOMIC_BITWISE)
