// SPDX-License-Identifier: Apache-2.0
// One body, two names: each function of OpenSHMEM is a strong pshmem_X and a weak shmem_X at the
// same address, so that a profiling tool can put its own shmem_X in front.
//
// <openshmem/pshmem.h> is included here, so that a definition which differs from the installed
// declaration does not compile.
#pragma once

#include <openshmem/pshmem.h>
#include <openshmem/shmem.h>

#include "capi/openshmem/types.def"
#include "capi/out_of_memory.h"

#define MEMSPAN_PROFILED_AS(attributes, result, weak_name, strong_name, parameters) \
  extern "C" __attribute__((weak, alias(#strong_name), visibility("default")))      \
  result weak_name parameters;                                                      \
  extern "C" __attribute__((visibility("default") attributes)) result strong_name parameters

// MEMSPAN_PROFILED(int, my_pe, (void)) { body }
#define MEMSPAN_PROFILED(result, name, parameters) \
  MEMSPAN_PROFILED_AS(, result, shmem_##name, pshmem_##name, parameters)

// For a data path: inlines all visible functions that the body calls. Otherwise the compiler shares
// one copy among the many types behind a jump.
#define MEMSPAN_FLAT_PROFILED(result, name, parameters) \
  MEMSPAN_PROFILED_AS(MEMSPAN_FLATTEN, result, shmem_##name, pshmem_##name, parameters)
#define MEMSPAN_FLATTEN , flatten
#define MEMSPAN_UNPACK(...) __VA_ARGS__

// MEMSPAN_IN_CONTEXT(void, name, (int x), statement): shmem_name(x, pe) and shmem_ctx_name(ctx, x,
// pe) of one statement, which may use `call`, `peer` and `context` (handles.h).
#define MEMSPAN_IN_CONTEXT(result, name, parameters, ...)                       \
  MEMSPAN_FLAT_PROFILED(result, name, (MEMSPAN_UNPACK parameters, int peer)) {  \
    constexpr const char* call = "shmem_" #name;                                \
    constexpr ContextNumber context = kDefaultContext;                          \
    __VA_ARGS__;                                                                \
  }                                                                             \
  MEMSPAN_FLAT_PROFILED(result, ctx_##name,                                     \
                        (shmem_ctx_t ctx, MEMSPAN_UNPACK parameters, int pe)) { \
    constexpr const char* call = "shmem_ctx_" #name;                            \
    const int peer = peer_of(call, ctx, pe);                                    \
    const ContextNumber context = number_of(ctx);                               \
    __VA_ARGS__;                                                                \
  }
