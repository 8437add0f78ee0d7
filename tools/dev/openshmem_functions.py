# SPDX-License-Identifier: Apache-2.0
"""The functions of OpenSHMEM that the library has, as templates over the type tables.

`@` in a prototype stands for the name of a table's entry and TYPE for its C type; `(CTX` says that
there is a second form, shmem_ctx_..., whose first parameter is a context. A function that is not
implemented is not listed, and so not declared.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Function:
    prototype: str
    table: str = ""  # in types.def, without MEMSPAN_; empty for a single function


@dataclasses.dataclass(frozen=True)
class Section:
    comment: str
    functions: list


def name_of(prototype):
    return re.search(r"(\w+)\(", prototype).group(1)


# The C types that can be told apart, for the type-generic names: of each table's names only these
# are asked, since int32_t, size_t and so on are one of them.
DISTINCT = ["float", "double", "longdouble", "char", "schar", "short", "int", "long", "longlong", "uchar",
            "ushort", "uint", "ulong", "ulonglong", "complexd", "complexf"]
# Names of tables where the distinct type goes by another name of the same type.
STANDS_FOR = {"schar": "int8"}


TITLE = """
OpenSHMEM: a symmetric heap that every process (PE) of a job can put to, get from, signal on and
compute over.

The interface is that of the OpenSHMEM specification, version 1.6 (openshmem.org); what a function
means is said there. C99 or later, C++11 or later; link with -lshmem.

A macro MEMSPAN_DECLARE_ declares its functions for each type of the set in the line below it.
<memspan/openshmem_types.h> lists the sets: shmem_int_put puts elements of `int`.

Units: `nelems` counts elements of the function's type (of 8, 16, ... bits where the name ends in
that number) and bytes where it ends in `mem`; strides count elements; sizes of allocations are
bytes. A PE is a number from 0, in the world for functions without a context or team, otherwise in
the team that the context was made of or that is given.

Ownership: symmetric memory belongs to the job from shmem_malloc until shmem_free or the last
shmem_finalize; teams and contexts belong to their creator, until they are destroyed. All other
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

#include <memspan/openshmem_types.h>
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

/* Deprecated: what the pSync and pWrk arrays of active sets need. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 2
#define SHMEM_BARRIER_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1

/* Deprecated spellings. */
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* Handles: values to assign and compare, never to look through. The constants are allowed in static
 * initialisers. */
typedef struct memspan_team_handle* shmem_team_t;
typedef struct memspan_ctx_handle* shmem_ctx_t;
#ifdef __cplusplus
#define MEMSPAN_HANDLE(type, number) (reinterpret_cast<type>(number))
#else
#define MEMSPAN_HANDLE(type, number) ((type)(number))
#endif
#define SHMEM_TEAM_INVALID MEMSPAN_HANDLE(shmem_team_t, 0)
#define SHMEM_TEAM_WORLD MEMSPAN_HANDLE(shmem_team_t, 1)
#define SHMEM_TEAM_SHARED MEMSPAN_HANDLE(shmem_team_t, 2)
#define SHMEM_CTX_INVALID MEMSPAN_HANDLE(shmem_ctx_t, 0)
#define SHMEM_CTX_DEFAULT MEMSPAN_HANDLE(shmem_ctx_t, 1)

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
The profiling aliases of OpenSHMEM: each function of <shmem.h> also has the name pshmem_....

A tool defines shmem_X itself and calls pshmem_X; the library's own shmem_X is a weak symbol of the
same code. Units, ownership, threads and errors are those of <shmem.h>.
"""

PROFILING_OPENING = """
#include <memspan/openshmem_types.h>

#include "shmem.h"
"""

SETUP = Section("""
Start, end and PE numbers. Initialisation is counted: the job is left by the last finalize, and a
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
short every PE gets NULL. A size of 0 gives NULL without waiting for the others.
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
Put with signal: a PE that sees the signal sees the data.
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
    types = "WAIT_TYPES"
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

OLD_WAIT = Section("""
Deprecated: wait until the word is not `cmp_value`, and waits for longs.
""", [
    Function("void shmem_@_wait(TYPE* ivar, TYPE cmp_value)", "DEPRECATED_WAIT_TYPES"),
    Function("void shmem_wait(long* ivar, long cmp_value)"),
    Function("void shmem_wait_until(long* ivar, int cmp, long cmp_value)"),
])

LOCK = Section("""
Locks, first come first served: one symmetric long, 0 on all PEs at first, and the same lock on all.
test_lock: 0 when the caller now has it, 1 when another has. clear_lock completes the default
context's operations first.
""", [
    Function("void shmem_set_lock(long* lock)"),
    Function("int shmem_test_lock(long* lock)"),
    Function("void shmem_clear_lock(long* lock)"),
])

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
Teams. A split is collective over the parent; PEs outside the new team get SHMEM_TEAM_INVALID.
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
    for verb in ("inscan", "exscan"):
        forms.append(Function(f"int shmem_@_sum_{verb}(shmem_team_t team, TYPE* dest, const TYPE* source, "
                              "size_t nelems)", "ARITHMETIC_REDUCE_TYPES"))
    return forms


COLLECTIVE = Section("""
Collectives of a team; they return 0. inscan: member i gets the sum over members 0 to i; exscan: over
those before it.
""", collective_forms())

ACTIVE_SET = "int PE_start, int logPE_stride, int PE_size"


def active_set_forms():
    strides = "ptrdiff_t dst, ptrdiff_t sst, size_t nelems"
    forms = [Function(f"void shmem_barrier({ACTIVE_SET}, long* pSync)"),
             Function(f"void shmem_sync({ACTIVE_SET}, long* pSync)")]
    for verb, rest in (("broadcast", "size_t nelems, int PE_root"), ("collect", "size_t nelems"),
                       ("fcollect", "size_t nelems"), ("alltoall", "size_t nelems"), ("alltoalls", strides)):
        forms.append(Function(f"void shmem_{verb}@(void* dest, const void* source, {rest}, {ACTIVE_SET}, "
                              "long* pSync)", "ACTIVE_SET_SIZES"))
    for verb, kind in (("and", "BITWISE"), ("or", "BITWISE"), ("xor", "BITWISE"), ("max", "ORDERED"),
                       ("min", "ORDERED"), ("sum", "ARITHMETIC"), ("prod", "ARITHMETIC")):
        forms.append(Function(f"void shmem_@_{verb}_to_all(TYPE* dest, const TYPE* source, int nreduce, "
                              f"{ACTIVE_SET}, TYPE* pWrk, long* pSync)", f"TO_ALL_{kind}_TYPES"))
    return forms


OLD_COLLECTIVE = Section("""
Deprecated: collectives of an active set, the PEs PE_start + i * 2^logPE_stride. pSync: a symmetric
array of the SYNC_SIZE of the call, all SHMEM_SYNC_VALUE, in no other use during it. broadcast leaves
the root's dest unchanged.
""", active_set_forms())


def old_atomic_forms():
    standard, extended = "STANDARD_AMO_TYPES", "EXTENDED_AMO_TYPES"
    return [
        Function("TYPE shmem_@_fetch(const TYPE* source, int pe)", extended),
        Function("void shmem_@_set(TYPE* dest, TYPE value, int pe)", extended),
        Function("TYPE shmem_@_swap(TYPE* dest, TYPE value, int pe)", extended),
        Function("TYPE shmem_@_cswap(TYPE* dest, TYPE cond, TYPE value, int pe)", standard),
        Function("TYPE shmem_@_fadd(TYPE* dest, TYPE value, int pe)", standard),
        Function("TYPE shmem_@_finc(TYPE* dest, int pe)", standard),
        Function("void shmem_@_add(TYPE* dest, TYPE value, int pe)", standard),
        Function("void shmem_@_inc(TYPE* dest, int pe)", standard),
        Function("long shmem_swap(long* dest, long value, int pe)"),
    ]


OLD_ATOMIC = Section("""
Deprecated names of atomics.
""", old_atomic_forms())

OLD_NAMES = Section("""
Deprecated, or removed from the standard: other names, and caches that need no care any more.
""", [
    Function("void start_pes(int npes)"),
    Function("int _my_pe(void)"),
    Function("int _num_pes(void)"),
    Function("void* shmalloc(size_t size)"),
    Function("void* shmemalign(size_t alignment, size_t size)"),
    Function("void* shrealloc(void* ptr, size_t size)"),
    Function("void shfree(void* ptr)"),
    Function("void shmem_clear_cache_inv(void)"),
    Function("void shmem_set_cache_inv(void)"),
    Function("void shmem_clear_cache_line_inv(void* dest)"),
    Function("void shmem_set_cache_line_inv(void* dest)"),
    Function("void shmem_udcflush(void)"),
    Function("void shmem_udcflush_line(void* dest)"),
])

# Type-generic names that are more than "the middle of the name is left out": the cases of the first
# argument's type, and the overload that C++ needs beside the C function of that name.
SPECIAL_GENERICS = {
    "shmem_sync": ("shmem_team_t: shmem_team_sync, default: shmem_sync",
                   "inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }"),
    "shmem_signal_add": ("shmem_ctx_t: shmem_ctx_signal_add, default: shmem_signal_add",
                         "inline void shmem_signal_add(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) "
                         "{ shmem_ctx_signal_add(ctx, sig_addr, signal, pe); }"),
    "shmem_signal_set": ("shmem_ctx_t: shmem_ctx_signal_set, default: shmem_signal_set",
                         "inline void shmem_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) "
                         "{ shmem_ctx_signal_set(ctx, sig_addr, signal, pe); }"),
}
# Generic names that are C functions on longs as well.
ALSO_ON_LONGS = ("shmem_swap", "shmem_wait_until")
# `@` in the middle, but no type-generic name in the standard.
NOT_GENERIC = ("shmem_wait",)

SECTIONS = [SETUP, MEMORY, *RMA, SIGNAL, *atomic_forms(), WAIT, LOCK, ORDER, SYNC, TEAM, CONTEXT, COLLECTIVE,
            OLD_WAIT, OLD_COLLECTIVE, OLD_ATOMIC, OLD_NAMES]
