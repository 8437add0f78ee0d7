# SPDX-License-Identifier: Apache-2.0
"""The functions of OpenSHMEM that the library has, as templates over the type tables.

`@` in a prototype stands for the name of a table's entry and TYPE for its C type; `(CTX` says that
there is a second form, shmem_ctx_..., whose first parameter is a context. A function that is not
implemented is not listed, and so not declared.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Function:
    prototype: str
    table: str = ""  # in types.def, without MEMSPAN_; empty for a single function


@dataclasses.dataclass(frozen=True)
class Section:
    comment: str
    functions: list


TITLE = """
OpenSHMEM: a symmetric heap that every process (PE) of a job can put to, get from, signal on and
compute over.

The interface is that of the OpenSHMEM specification, version 1.6 (openshmem.org); what a function
means is said there. C99 or later, C++11 or later; link with -lshmem.

Units: `nelems` counts elements of the function's type (of 8, 16, ... bits where the name ends in
that number) and bytes where it ends in `mem`; strides count elements; sizes of allocations are
bytes. A PE is a number from 0, in the world for functions without a context or team, otherwise in
the team that the context was made of or that is given.

Ownership: symmetric memory belongs to the job from shmem_malloc until shmem_free or the last
shmem_finalize; teams and contexts belong to who made them, until they are destroyed. All other
pointers stay the caller's; the library keeps none after a call returned, except that the source of
a non-blocking put, and the destination of a non-blocking get, are in use until shmem_quiet.

Threads: SHMEM_THREAD_MULTIPLE is always provided. Any functions may be called by several threads
at once, except that collectives on one team are called by one thread at a time.

Errors: the specification gives most functions no way to report one. A mistake that can be seen
(an address that is not symmetric, a PE that does not exist, a call before initialisation) prints
one line to stderr and ends the process with code 1. So does the death of a PE that a call waits
for, unless shmemx_set_error_handler (shmemx.h) was called.
"""

OPENING = """
#ifdef MEMSPAN_EARLY_SHMEM_NAMES
#error "include <shmem.h> before <shmem_api.h>: their names collide"
#endif

#include <stddef.h>
#include <stdint.h>

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 256
#define SHMEM_VENDOR_STRING "memspan"

#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_GE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_LE 5

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

#define SHMEM_MALLOC_ATOMICS_REMOTE (1L << 0)
#define SHMEM_MALLOC_SIGNAL_REMOTE (1L << 1)

#define SHMEM_CTX_PRIVATE (1L << 0)
#define SHMEM_CTX_SERIALIZED (1L << 1)
#define SHMEM_CTX_NOSTORE (1L << 2)

#define SHMEM_CTX_SESSION_TOTAL_OPS (1L << 0)
#define SHMEM_CTX_SESSION_BATCH (1L << 1)

#define SHMEM_TEAM_NUM_CONTEXTS (1L << 0)

/* Handles: values to assign and compare, never to look through. The constants can stand in static
 * initialisers. */
typedef struct memspan_team_handle* shmem_team_t;
typedef struct memspan_ctx_handle* shmem_ctx_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)2)
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)

typedef struct {
  int num_contexts;
} shmem_team_config_t;

typedef struct {
  size_t total_ops;
} shmem_ctx_session_config_t;

/* C++ has no _Complex of its own; compilers have it as an extension with the same layout. */
#ifdef __cplusplus
__extension__ typedef double _Complex memspan_complexd;
__extension__ typedef float _Complex memspan_complexf;
#else
typedef double _Complex memspan_complexd;
typedef float _Complex memspan_complexf;
#endif

#ifndef MEMSPAN_NORETURN
#if defined(__cplusplus)
#define MEMSPAN_NORETURN [[noreturn]]
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define MEMSPAN_NORETURN _Noreturn
#else
#define MEMSPAN_NORETURN __attribute__((__noreturn__))
#endif
#endif
"""

PROFILING_TITLE = """
The profiling twins of OpenSHMEM: each function of <shmem.h> under the name pshmem_... as well.

A tool defines shmem_X itself and calls pshmem_X; the library's own shmem_X is a weak symbol of the
same code. Units, ownership, threads and errors are those of <shmem.h>.
"""

PROFILING_OPENING = """
#include "shmem.h"
"""

SETUP = Section("""
Start, end and who is there. Initialisation is counted: the job is left by the last finalize, and a
program that ends without it leaves by an exit handler.
""", [
    Function("void shmem_init(void)"),
    Function("int shmem_init_thread(int requested, int* provided)"),
    Function("void shmem_query_thread(int* provided)"),
    Function("void shmem_query_initialized(int* initialized)"),
    Function("void shmem_finalize(void)"),
    Function("MEMSPAN_NORETURN void shmem_global_exit(int status)"),
    Function("int shmem_my_pe(void)"),
    Function("int shmem_n_pes(void)"),
    Function("int shmem_pe_accessible(int pe)"),
    Function("int shmem_addr_accessible(const void* addr, int pe)"),
    Function("void* shmem_ptr(const void* dest, int pe)"),
    Function("void shmem_info_get_version(int* major, int* minor)"),
    Function("void shmem_info_get_name(char* name)"),
    Function("void shmem_pcontrol(int level, ...)"),
])

MEMORY = Section("""
The symmetric heap. Collective over all PEs, with the same arguments everywhere; when memory is
short every PE gets NULL. A size of 0 gives NULL without meeting the others.
""", [
    Function("void* shmem_malloc(size_t size)"),
    Function("void* shmem_calloc(size_t count, size_t size)"),
    Function("void* shmem_align(size_t alignment, size_t size)"),
    Function("void* shmem_malloc_with_hints(size_t size, long hints)"),
    Function("void* shmem_realloc(void* ptr, size_t size)"),
    Function("void shmem_free(void* ptr)"),
])

PUT_GET_PARAMETERS = "CTXTYPE* dest, const TYPE* source, size_t nelems, int pe"
BLOCK_PARAMETERS = "CTXvoid* dest, const void* source, size_t nelems, int pe"
SIGNAL_PARAMETERS = "size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe"
STRIDED = "ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe"
STRIDED_BLOCKS = "ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe"


def put_get_forms(verb):
    return [
        Function(f"void shmem_@_{verb}({PUT_GET_PARAMETERS})", "RMA_TYPES"),
        Function(f"void shmem_{verb}@({BLOCK_PARAMETERS})", "SIZES"),
        Function(f"void shmem_{verb}mem({BLOCK_PARAMETERS})"),
        Function(f"void shmem_@_{verb}_nbi({PUT_GET_PARAMETERS})", "RMA_TYPES"),
        Function(f"void shmem_{verb}@_nbi({BLOCK_PARAMETERS})", "SIZES"),
        Function(f"void shmem_{verb}mem_nbi({BLOCK_PARAMETERS})"),
    ]


def strided_forms(verb, parameters):
    return [
        Function(f"void shmem_@_{verb}(CTXTYPE* dest, const TYPE* source, {parameters})", "RMA_TYPES"),
        Function(f"void shmem_{verb}@(CTXvoid* dest, const void* source, {parameters})", "SIZES"),
    ]


def put_signal_forms(suffix):
    return [
        Function(f"void shmem_@_put_signal{suffix}(CTXTYPE* dest, const TYPE* source, {SIGNAL_PARAMETERS})",
                 "RMA_TYPES"),
        Function(f"void shmem_put@_signal{suffix}(CTXvoid* dest, const void* source, {SIGNAL_PARAMETERS})",
                 "SIZES"),
        Function(f"void shmem_putmem_signal{suffix}(CTXvoid* dest, const void* source, {SIGNAL_PARAMETERS})"),
    ]


RMA = [
    Section("One element to or from a PE.", [
        Function("void shmem_@_p(CTXTYPE* dest, TYPE value, int pe)", "RMA_TYPES"),
        Function("TYPE shmem_@_g(CTXconst TYPE* source, int pe)", "RMA_TYPES"),
    ]),
    Section("Put. `dest` is symmetric, `source` any memory of the caller.", put_get_forms("put")),
    Section("Get. `source` is symmetric, `dest` any memory of the caller.", put_get_forms("get")),
    Section("Strided: element i is at i * stride; strides count elements.",
            strided_forms("iput", STRIDED) + strided_forms("iget", STRIDED)),
    Section("Strided blocks of `bsize` elements.",
            strided_forms("ibput", STRIDED_BLOCKS) + strided_forms("ibget", STRIDED_BLOCKS)),
]

SIGNAL = Section("""
Put with signal: who sees the signal sees the data.
""", put_signal_forms("") + put_signal_forms("_nbi") + [
    Function("void shmem_signal_add(CTXuint64_t* sig_addr, uint64_t signal, int pe)"),
    Function("void shmem_signal_set(CTXuint64_t* sig_addr, uint64_t signal, int pe)"),
    Function("uint64_t shmem_signal_fetch(const uint64_t* sig_addr)"),
    Function("uint64_t shmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value)"),
])


def atomic_forms():
    standard, extended, bitwise = "STANDARD_AMO_TYPES", "EXTENDED_AMO_TYPES", "BITWISE_AMO_TYPES"
    value = "TYPE* dest, TYPE value, int pe"
    compare = "TYPE* dest, TYPE cond, TYPE value, int pe"
    increment = "TYPE* dest, int pe"
    forms = [
        Function("TYPE shmem_@_atomic_fetch(CTXconst TYPE* source, int pe)", extended),
        Function(f"void shmem_@_atomic_set(CTX{value})", extended),
        Function(f"TYPE shmem_@_atomic_swap(CTX{value})", extended),
        Function(f"TYPE shmem_@_atomic_compare_swap(CTX{compare})", standard),
        Function(f"TYPE shmem_@_atomic_fetch_inc(CTX{increment})", standard),
        Function(f"void shmem_@_atomic_inc(CTX{increment})", standard),
        Function(f"TYPE shmem_@_atomic_fetch_add(CTX{value})", standard),
        Function(f"void shmem_@_atomic_add(CTX{value})", standard),
    ]
    for verb in ("and", "or", "xor"):
        forms += [
            Function(f"TYPE shmem_@_atomic_fetch_{verb}(CTX{value})", bitwise),
            Function(f"void shmem_@_atomic_{verb}(CTX{value})", bitwise),
        ]
    later = [
        Function("void shmem_@_atomic_fetch_nbi(CTXTYPE* fetch, const TYPE* source, int pe)", extended),
        Function(f"void shmem_@_atomic_swap_nbi(CTXTYPE* fetch, {value})", extended),
        Function(f"void shmem_@_atomic_compare_swap_nbi(CTXTYPE* fetch, {compare})", standard),
        Function(f"void shmem_@_atomic_fetch_inc_nbi(CTXTYPE* fetch, {increment})", standard),
        Function(f"void shmem_@_atomic_fetch_add_nbi(CTXTYPE* fetch, {value})", standard),
    ]
    for verb in ("and", "or", "xor"):
        later.append(Function(f"void shmem_@_atomic_fetch_{verb}_nbi(CTXTYPE* fetch, {value})", bitwise))
    return [
        Section("Atomics on a PE's copy of a symmetric word.", forms),
        Section("Atomics whose result may come as late as the next quiet.", later),
    ]


def wait_forms():
    types = "STANDARD_AMO_TYPES"
    forms = [
        Function("void shmem_@_wait_until(TYPE* ivar, int cmp, TYPE cmp_value)", types),
        Function("int shmem_@_test(TYPE* ivar, int cmp, TYPE cmp_value)", types),
    ]
    for vector, value in (("", "TYPE cmp_value"), ("_vector", "const TYPE* cmp_values")):
        for verb, result in (("wait_until", "void"), ("test", "int")):
            array = "TYPE* ivars, size_t nelems"
            rest = f"const int* status, int cmp, {value}"
            forms += [
                Function(f"{result} shmem_@_{verb}_all{vector}({array}, {rest})", types),
                Function(f"size_t shmem_@_{verb}_any{vector}({array}, {rest})", types),
                Function(f"size_t shmem_@_{verb}_some{vector}({array}, size_t* indices, {rest})", types),
            ]
    return forms


WAIT = Section("""
Waiting for, or looking at, symmetric words of the caller that other PEs change. An element whose
`status` is not 0 is left out; `status` may be NULL.
""", wait_forms())

ORDER = Section("""
fence orders, quiet completes what this PE sent before. pe_quiet: only towards the listed PEs.
""", [
    Function("void shmem_fence(void)"),
    Function("void shmem_ctx_fence(shmem_ctx_t ctx)"),
    Function("void shmem_quiet(void)"),
    Function("void shmem_ctx_quiet(shmem_ctx_t ctx)"),
    Function("void shmem_pe_quiet(const int* target_pes, size_t npes)"),
    Function("void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int* target_pes, size_t npes)"),
])

SYNC = Section("""
Meeting. barrier_all completes the default context's operations first, sync only meets.
""", [
    Function("void shmem_barrier_all(void)"),
    Function("void shmem_sync_all(void)"),
    Function("int shmem_team_sync(shmem_team_t team)"),
])

TEAM = Section("""
Teams. A split is collective over the parent; who is not a member gets SHMEM_TEAM_INVALID.
""", [
    Function("int shmem_team_my_pe(shmem_team_t team)"),
    Function("int shmem_team_n_pes(shmem_team_t team)"),
    Function("int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t* config)"),
    Function("int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)"),
    Function("int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size, "
             "const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team)"),
    Function("int shmem_team_split_2d(shmem_team_t parent_team, int xrange, "
             "const shmem_team_config_t* xaxis_config, long xaxis_mask, shmem_team_t* xaxis_team, "
             "const shmem_team_config_t* yaxis_config, long yaxis_mask, shmem_team_t* yaxis_team)"),
    Function("void shmem_team_destroy(shmem_team_t team)"),
    Function("void* shmem_team_ptr(shmem_team_t team, const void* dest, int pe)"),
])

CONTEXT = Section("""
Contexts: PE numbers of the ctx forms count within the context's team.
""", [
    Function("int shmem_ctx_create(long options, shmem_ctx_t* ctx)"),
    Function("int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t* ctx)"),
    Function("void shmem_ctx_destroy(shmem_ctx_t ctx)"),
    Function("int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t* team)"),
    Function("void shmem_ctx_session_start(shmem_ctx_t ctx, long options, "
             "const shmem_ctx_session_config_t* config, long config_mask)"),
    Function("void shmem_ctx_session_stop(shmem_ctx_t ctx)"),
])


def collective_forms():
    forms = []
    strides = "ptrdiff_t dst, ptrdiff_t sst, size_t nelems"
    for verb, rest in (("broadcast", "size_t nelems, int PE_root"), ("collect", "size_t nelems"),
                       ("fcollect", "size_t nelems"), ("alltoall", "size_t nelems"),
                       ("alltoalls", strides)):
        forms += [
            Function(f"int shmem_@_{verb}(shmem_team_t team, TYPE* dest, const TYPE* source, {rest})",
                     "RMA_TYPES"),
            Function(f"int shmem_{verb}mem(shmem_team_t team, void* dest, const void* source, {rest})"),
        ]
    for verb, table in (("and", "BITWISE_REDUCE_TYPES"), ("or", "BITWISE_REDUCE_TYPES"),
                        ("xor", "BITWISE_REDUCE_TYPES"), ("max", "RMA_TYPES"), ("min", "RMA_TYPES"),
                        ("sum", "ARITHMETIC_REDUCE_TYPES"), ("prod", "ARITHMETIC_REDUCE_TYPES")):
        forms.append(Function(f"int shmem_@_{verb}_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, "
                              "size_t nreduce)", table))
    return forms


COLLECTIVE = Section("""
Collectives of a team; they return 0.
""", collective_forms())

SECTIONS = [SETUP, MEMORY, *RMA, SIGNAL, *atomic_forms(), WAIT, ORDER, SYNC, TEAM, CONTEXT, COLLECTIVE]
