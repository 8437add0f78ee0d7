/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSHMEM: a symmetric heap that every process (PE) of a job can put to, get from, signal on and
 * compute over.
 *
 * The interface is that of the OpenSHMEM specification, version 1.6 (openshmem.org); what a function
 * means is said there. C99 or later, C++11 or later; link with -lshmem.
 *
 * A macro MEMSPAN_DECLARE_ declares its functions for each type of the set in the line below it.
 * <memspan/openshmem_types.h> lists the sets: shmem_int_put puts elements of `int`.
 *
 * Units: `nelems` counts elements of the function's type (of 8, 16, ... bits where the name ends in
 * that number) and bytes where it ends in `mem`; strides count elements; sizes of allocations are
 * bytes. A PE is a number from 0, in the world for functions without a context or team, otherwise in
 * the team that the context was made of or that is given.
 *
 * Ownership: symmetric memory belongs to the job from shmem_malloc until shmem_free or the last
 * shmem_finalize; teams and contexts belong to their creator, until they are destroyed. All other
 * pointers stay the caller's; the library keeps none after a call returned, except that the source of
 * a non-blocking put, and the destination of a non-blocking get, are in use until shmem_quiet.
 *
 * Threads: SHMEM_THREAD_MULTIPLE is always provided. Any functions may be called by several threads
 * at once, except that collectives on one team are called by one thread at a time.
 *
 * Errors: the specification gives most functions no way to report one. A mistake that can be seen
 * (an address that is not symmetric, a PE that does not exist, a call before initialisation) prints
 * one line to stderr and ends the process with code 1. So does the death of a PE that a call waits
 * for, unless shmemx_set_error_handler (shmemx.h) was called.
 *
 * Written by tools/dev/generate_openshmem.py; change that or types.def, not this file.
 */
#ifndef MEMSPAN_OPENSHMEM_SHMEM_H
#define MEMSPAN_OPENSHMEM_SHMEM_H

/* clang-format off */
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

#ifdef __cplusplus
extern "C" {
#endif

/* Start, end and PE numbers. Initialisation is counted: the job is left by the last finalize, and a
 * program that ends without it leaves by an exit handler. */
void shmem_init(void);
int shmem_init_thread(int requested, int* provided);
void shmem_query_thread(int* provided);
void shmem_query_initialized(int* initialized);
void shmem_finalize(void);
MEMSPAN_NORETURN void shmem_global_exit(int status);
int shmem_my_pe(void);
int shmem_n_pes(void);
int shmem_pe_accessible(int pe);
int shmem_addr_accessible(const void* addr, int pe);
void* shmem_ptr(const void* dest, int pe);
void shmem_info_get_version(int* major, int* minor);
void shmem_info_get_name(char* name);
void shmem_pcontrol(int level, ...);

/* The symmetric heap. Collective over all PEs, with the same arguments everywhere; when memory is
 * short every PE gets NULL. A size of 0 gives NULL without waiting for the others. */
void* shmem_malloc(size_t size);
void* shmem_calloc(size_t count, size_t size);
void* shmem_align(size_t alignment, size_t size);
void* shmem_malloc_with_hints(size_t size, long hints);
void* shmem_realloc(void* ptr, size_t size);
void shmem_free(void* ptr);

/* One element to or from a PE. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_p(type* dest, type value, int pe); \
  void shmem_ctx_##name##_p(shmem_ctx_t ctx, type* dest, type value, int pe); \
  type shmem_##name##_g(const type* source, int pe); \
  type shmem_ctx_##name##_g(shmem_ctx_t ctx, const type* source, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Put. `dest` is symmetric, `source` any memory of the caller. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_put(type* dest, const type* source, size_t nelems, int pe); \
  void shmem_ctx_##name##_put(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe); \
  void shmem_##name##_put_nbi(type* dest, const type* source, size_t nelems, int pe); \
  void shmem_ctx_##name##_put_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_put##name(void* dest, const void* source, size_t nelems, int pe); \
  void shmem_ctx_put##name(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe); \
  void shmem_put##name##_nbi(void* dest, const void* source, size_t nelems, int pe); \
  void shmem_ctx_put##name##_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void shmem_putmem(void* dest, const void* source, size_t nelems, int pe);
void shmem_ctx_putmem(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
void shmem_putmem_nbi(void* dest, const void* source, size_t nelems, int pe);
void shmem_ctx_putmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);

/* Get. `source` is symmetric, `dest` any memory of the caller. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_get(type* dest, const type* source, size_t nelems, int pe); \
  void shmem_ctx_##name##_get(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe); \
  void shmem_##name##_get_nbi(type* dest, const type* source, size_t nelems, int pe); \
  void shmem_ctx_##name##_get_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_get##name(void* dest, const void* source, size_t nelems, int pe); \
  void shmem_ctx_get##name(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe); \
  void shmem_get##name##_nbi(void* dest, const void* source, size_t nelems, int pe); \
  void shmem_ctx_get##name##_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void shmem_getmem(void* dest, const void* source, size_t nelems, int pe);
void shmem_ctx_getmem(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
void shmem_getmem_nbi(void* dest, const void* source, size_t nelems, int pe);
void shmem_ctx_getmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);

/* Strided: element i is at i * stride; strides count elements. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_iput(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_ctx_##name##_iput(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_##name##_iget(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_ctx_##name##_iget(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_iput##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_ctx_iput##name(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_iget##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void shmem_ctx_iget##name(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Strided blocks of `bsize` elements. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_ibput(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void shmem_ctx_##name##_ibput(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void shmem_##name##_ibget(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void shmem_ctx_##name##_ibget(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_ibput##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void shmem_ctx_ibput##name(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void shmem_ibget##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void shmem_ctx_ibget##name(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Put with signal: a PE that sees the signal sees the data. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_put_signal(type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void shmem_ctx_##name##_put_signal(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void shmem_##name##_put_signal_nbi(type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void shmem_ctx_##name##_put_signal_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_put##name##_signal(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void shmem_ctx_put##name##_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void shmem_put##name##_signal_nbi(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void shmem_ctx_put##name##_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void shmem_putmem_signal(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
void shmem_ctx_putmem_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
void shmem_putmem_signal_nbi(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
void shmem_ctx_putmem_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
void shmem_signal_add(uint64_t* sig_addr, uint64_t signal, int pe);
void shmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe);
void shmem_signal_set(uint64_t* sig_addr, uint64_t signal, int pe);
void shmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe);
uint64_t shmem_signal_fetch(const uint64_t* sig_addr);
uint64_t shmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value);

/* Atomics on a PE's copy of a symmetric word. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type shmem_##name##_atomic_fetch(const type* source, int pe); \
  type shmem_ctx_##name##_atomic_fetch(shmem_ctx_t ctx, const type* source, int pe); \
  void shmem_##name##_atomic_set(type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_set(shmem_ctx_t ctx, type* dest, type value, int pe); \
  type shmem_##name##_atomic_swap(type* dest, type value, int pe); \
  type shmem_ctx_##name##_atomic_swap(shmem_ctx_t ctx, type* dest, type value, int pe);
MEMSPAN_EXTENDED_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type shmem_##name##_atomic_compare_swap(type* dest, type cond, type value, int pe); \
  type shmem_ctx_##name##_atomic_compare_swap(shmem_ctx_t ctx, type* dest, type cond, type value, int pe); \
  type shmem_##name##_atomic_fetch_inc(type* dest, int pe); \
  type shmem_ctx_##name##_atomic_fetch_inc(shmem_ctx_t ctx, type* dest, int pe); \
  void shmem_##name##_atomic_inc(type* dest, int pe); \
  void shmem_ctx_##name##_atomic_inc(shmem_ctx_t ctx, type* dest, int pe); \
  type shmem_##name##_atomic_fetch_add(type* dest, type value, int pe); \
  type shmem_ctx_##name##_atomic_fetch_add(shmem_ctx_t ctx, type* dest, type value, int pe); \
  void shmem_##name##_atomic_add(type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_add(shmem_ctx_t ctx, type* dest, type value, int pe);
MEMSPAN_STANDARD_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type shmem_##name##_atomic_fetch_and(type* dest, type value, int pe); \
  type shmem_ctx_##name##_atomic_fetch_and(shmem_ctx_t ctx, type* dest, type value, int pe); \
  void shmem_##name##_atomic_and(type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_and(shmem_ctx_t ctx, type* dest, type value, int pe); \
  type shmem_##name##_atomic_fetch_or(type* dest, type value, int pe); \
  type shmem_ctx_##name##_atomic_fetch_or(shmem_ctx_t ctx, type* dest, type value, int pe); \
  void shmem_##name##_atomic_or(type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_or(shmem_ctx_t ctx, type* dest, type value, int pe); \
  type shmem_##name##_atomic_fetch_xor(type* dest, type value, int pe); \
  type shmem_ctx_##name##_atomic_fetch_xor(shmem_ctx_t ctx, type* dest, type value, int pe); \
  void shmem_##name##_atomic_xor(type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_xor(shmem_ctx_t ctx, type* dest, type value, int pe);
MEMSPAN_BITWISE_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Atomics whose result may come as late as the next quiet. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_atomic_fetch_nbi(type* fetch, const type* source, int pe); \
  void shmem_ctx_##name##_atomic_fetch_nbi(shmem_ctx_t ctx, type* fetch, const type* source, int pe); \
  void shmem_##name##_atomic_swap_nbi(type* fetch, type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_swap_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe);
MEMSPAN_EXTENDED_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_atomic_compare_swap_nbi(type* fetch, type* dest, type cond, type value, int pe); \
  void shmem_ctx_##name##_atomic_compare_swap_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type cond, type value, int pe); \
  void shmem_##name##_atomic_fetch_inc_nbi(type* fetch, type* dest, int pe); \
  void shmem_ctx_##name##_atomic_fetch_inc_nbi(shmem_ctx_t ctx, type* fetch, type* dest, int pe); \
  void shmem_##name##_atomic_fetch_add_nbi(type* fetch, type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_fetch_add_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe);
MEMSPAN_STANDARD_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_atomic_fetch_and_nbi(type* fetch, type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_fetch_and_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe); \
  void shmem_##name##_atomic_fetch_or_nbi(type* fetch, type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_fetch_or_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe); \
  void shmem_##name##_atomic_fetch_xor_nbi(type* fetch, type* dest, type value, int pe); \
  void shmem_ctx_##name##_atomic_fetch_xor_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe);
MEMSPAN_BITWISE_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Waiting for, or looking at, symmetric words of the caller that other PEs change. An element whose
 * `status` is not 0 is left out; `status` may be NULL. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_wait_until(type* ivar, int cmp, type cmp_value); \
  int shmem_##name##_test(type* ivar, int cmp, type cmp_value); \
  void shmem_##name##_wait_until_all(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value); \
  size_t shmem_##name##_wait_until_any(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value); \
  size_t shmem_##name##_wait_until_some(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type cmp_value); \
  int shmem_##name##_test_all(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value); \
  size_t shmem_##name##_test_any(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value); \
  size_t shmem_##name##_test_some(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type cmp_value); \
  void shmem_##name##_wait_until_all_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values); \
  size_t shmem_##name##_wait_until_any_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values); \
  size_t shmem_##name##_wait_until_some_vector(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const type* cmp_values); \
  int shmem_##name##_test_all_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values); \
  size_t shmem_##name##_test_any_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values); \
  size_t shmem_##name##_test_some_vector(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const type* cmp_values);
MEMSPAN_WAIT_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Locks, first come first served: one symmetric long, 0 on all PEs at first, and the same lock on all.
 * test_lock: 0 when the caller now has it, 1 when another has. clear_lock completes the default
 * context's operations first. */
void shmem_set_lock(long* lock);
int shmem_test_lock(long* lock);
void shmem_clear_lock(long* lock);

/* fence orders, quiet completes what this PE sent before. pe_quiet: only towards the listed PEs. */
void shmem_fence(void);
void shmem_ctx_fence(shmem_ctx_t ctx);
void shmem_quiet(void);
void shmem_ctx_quiet(shmem_ctx_t ctx);
void shmem_pe_quiet(const int* target_pes, size_t npes);
void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int* target_pes, size_t npes);

/* Meeting. barrier_all completes the default context's operations first, sync only meets. */
void shmem_barrier_all(void);
void shmem_sync_all(void);
int shmem_team_sync(shmem_team_t team);

/* Teams. A split is collective over the parent; PEs outside the new team get SHMEM_TEAM_INVALID. */
int shmem_team_my_pe(shmem_team_t team);
int shmem_team_n_pes(shmem_team_t team);
int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t* config);
int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);
int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team);
int shmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config, long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config, long yaxis_mask, shmem_team_t* yaxis_team);
void shmem_team_destroy(shmem_team_t team);
void* shmem_team_ptr(shmem_team_t team, const void* dest, int pe);

/* Contexts: PE numbers of the ctx forms count within the context's team. */
int shmem_ctx_create(long options, shmem_ctx_t* ctx);
int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t* ctx);
void shmem_ctx_destroy(shmem_ctx_t ctx);
int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t* team);
void shmem_ctx_session_start(shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config, long config_mask);
void shmem_ctx_session_stop(shmem_ctx_t ctx);

/* Collectives of a team; they return 0. inscan: member i gets the sum over members 0 to i; exscan: over
 * those before it. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  int shmem_##name##_broadcast(shmem_team_t team, type* dest, const type* source, size_t nelems, int PE_root); \
  int shmem_##name##_collect(shmem_team_t team, type* dest, const type* source, size_t nelems); \
  int shmem_##name##_fcollect(shmem_team_t team, type* dest, const type* source, size_t nelems); \
  int shmem_##name##_alltoall(shmem_team_t team, type* dest, const type* source, size_t nelems); \
  int shmem_##name##_alltoalls(shmem_team_t team, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems); \
  int shmem_##name##_max_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int shmem_##name##_min_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  int shmem_##name##_and_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int shmem_##name##_or_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int shmem_##name##_xor_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce);
MEMSPAN_BITWISE_REDUCE_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  int shmem_##name##_sum_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int shmem_##name##_prod_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int shmem_##name##_sum_inscan(shmem_team_t team, type* dest, const type* source, size_t nelems); \
  int shmem_##name##_sum_exscan(shmem_team_t team, type* dest, const type* source, size_t nelems);
MEMSPAN_ARITHMETIC_REDUCE_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
int shmem_broadcastmem(shmem_team_t team, void* dest, const void* source, size_t nelems, int PE_root);
int shmem_collectmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_fcollectmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_alltoallmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int shmem_alltoallsmem(shmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems);

/* Deprecated: wait until the word is not `cmp_value`, and waits for longs. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_wait(type* ivar, type cmp_value);
MEMSPAN_DEPRECATED_WAIT_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void shmem_wait(long* ivar, long cmp_value);
void shmem_wait_until(long* ivar, int cmp, long cmp_value);

/* Deprecated: collectives of an active set, the PEs PE_start + i * 2^logPE_stride. pSync: a symmetric
 * array of the SYNC_SIZE of the call, all SHMEM_SYNC_VALUE, in no other use during it. broadcast leaves
 * the root's dest unchanged. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_broadcast##name(void* dest, const void* source, size_t nelems, int PE_root, int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void shmem_collect##name(void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void shmem_fcollect##name(void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void shmem_alltoall##name(void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void shmem_alltoalls##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start, int logPE_stride, int PE_size, long* pSync);
MEMSPAN_ACTIVE_SET_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_and_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync); \
  void shmem_##name##_or_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync); \
  void shmem_##name##_xor_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync);
MEMSPAN_TO_ALL_BITWISE_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_max_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync); \
  void shmem_##name##_min_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync);
MEMSPAN_TO_ALL_ORDERED_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void shmem_##name##_sum_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync); \
  void shmem_##name##_prod_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync);
MEMSPAN_TO_ALL_ARITHMETIC_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long* pSync);
void shmem_sync(int PE_start, int logPE_stride, int PE_size, long* pSync);

/* Deprecated names of atomics. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type shmem_##name##_fetch(const type* source, int pe); \
  void shmem_##name##_set(type* dest, type value, int pe); \
  type shmem_##name##_swap(type* dest, type value, int pe);
MEMSPAN_EXTENDED_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type shmem_##name##_cswap(type* dest, type cond, type value, int pe); \
  type shmem_##name##_fadd(type* dest, type value, int pe); \
  type shmem_##name##_finc(type* dest, int pe); \
  void shmem_##name##_add(type* dest, type value, int pe); \
  void shmem_##name##_inc(type* dest, int pe);
MEMSPAN_STANDARD_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
long shmem_swap(long* dest, long value, int pe);

/* Deprecated, or removed from the standard: other names, and caches that need no care any more. */
void start_pes(int npes);
int _my_pe(void);
int _num_pes(void);
void* shmalloc(size_t size);
void* shmemalign(size_t alignment, size_t size);
void* shrealloc(void* ptr, size_t size);
void shfree(void* ptr);
void shmem_clear_cache_inv(void);
void shmem_set_cache_inv(void);
void shmem_clear_cache_line_inv(void* dest);
void shmem_set_cache_line_inv(void* dest);
void shmem_udcflush(void);
void shmem_udcflush_line(void* dest);

#ifdef __cplusplus
}
#endif
/* clang-format on */

#ifdef __cplusplus
#include <memspan/openshmem_cxx.h>
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include <memspan/openshmem_c11.h>
#endif

#endif /* MEMSPAN_OPENSHMEM_SHMEM_H */
