/* SPDX-License-Identifier: Apache-2.0
 *
 * The profiling aliases of OpenSHMEM: each function of <shmem.h> also has the name pshmem_....
 *
 * A tool defines shmem_X itself and calls pshmem_X; the library's own shmem_X is a weak symbol of the
 * same code. Units, ownership, threads and errors are those of <shmem.h>.
 *
 * Written by tools/dev/generate_openshmem.py; change that or types.def, not this file.
 */
#ifndef MEMSPAN_OPENSHMEM_PSHMEM_H
#define MEMSPAN_OPENSHMEM_PSHMEM_H

/* clang-format off */
#include <memspan/openshmem_types.h>

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Start, end and PE numbers. Initialisation is counted: the job is left by the last finalize, and a
 * program that ends without it leaves by an exit handler. */
void pshmem_init(void);
int pshmem_init_thread(int requested, int* provided);
void pshmem_query_thread(int* provided);
void pshmem_query_initialized(int* initialized);
void pshmem_finalize(void);
MEMSPAN_NORETURN void pshmem_global_exit(int status);
int pshmem_my_pe(void);
int pshmem_n_pes(void);
int pshmem_pe_accessible(int pe);
int pshmem_addr_accessible(const void* addr, int pe);
void* pshmem_ptr(const void* dest, int pe);
void pshmem_info_get_version(int* major, int* minor);
void pshmem_info_get_name(char* name);
void pshmem_pcontrol(int level, ...);

/* The symmetric heap. Collective over all PEs, with the same arguments everywhere; when memory is
 * short every PE gets NULL. A size of 0 gives NULL without waiting for the others. */
void* pshmem_malloc(size_t size);
void* pshmem_calloc(size_t count, size_t size);
void* pshmem_align(size_t alignment, size_t size);
void* pshmem_malloc_with_hints(size_t size, long hints);
void* pshmem_realloc(void* ptr, size_t size);
void pshmem_free(void* ptr);

/* One element to or from a PE. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_p(type* dest, type value, int pe); \
  void pshmem_ctx_##name##_p(shmem_ctx_t ctx, type* dest, type value, int pe); \
  type pshmem_##name##_g(const type* source, int pe); \
  type pshmem_ctx_##name##_g(shmem_ctx_t ctx, const type* source, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Put. `dest` is symmetric, `source` any memory of the caller. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_put(type* dest, const type* source, size_t nelems, int pe); \
  void pshmem_ctx_##name##_put(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe); \
  void pshmem_##name##_put_nbi(type* dest, const type* source, size_t nelems, int pe); \
  void pshmem_ctx_##name##_put_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_put##name(void* dest, const void* source, size_t nelems, int pe); \
  void pshmem_ctx_put##name(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe); \
  void pshmem_put##name##_nbi(void* dest, const void* source, size_t nelems, int pe); \
  void pshmem_ctx_put##name##_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void pshmem_putmem(void* dest, const void* source, size_t nelems, int pe);
void pshmem_ctx_putmem(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
void pshmem_putmem_nbi(void* dest, const void* source, size_t nelems, int pe);
void pshmem_ctx_putmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);

/* Get. `source` is symmetric, `dest` any memory of the caller. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_get(type* dest, const type* source, size_t nelems, int pe); \
  void pshmem_ctx_##name##_get(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe); \
  void pshmem_##name##_get_nbi(type* dest, const type* source, size_t nelems, int pe); \
  void pshmem_ctx_##name##_get_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_get##name(void* dest, const void* source, size_t nelems, int pe); \
  void pshmem_ctx_get##name(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe); \
  void pshmem_get##name##_nbi(void* dest, const void* source, size_t nelems, int pe); \
  void pshmem_ctx_get##name##_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void pshmem_getmem(void* dest, const void* source, size_t nelems, int pe);
void pshmem_ctx_getmem(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);
void pshmem_getmem_nbi(void* dest, const void* source, size_t nelems, int pe);
void pshmem_ctx_getmem_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, int pe);

/* Strided: element i is at i * stride; strides count elements. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_iput(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void pshmem_ctx_##name##_iput(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void pshmem_##name##_iget(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void pshmem_ctx_##name##_iget(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_iput##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void pshmem_ctx_iput##name(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void pshmem_iget##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe); \
  void pshmem_ctx_iget##name(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Strided blocks of `bsize` elements. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_ibput(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void pshmem_ctx_##name##_ibput(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void pshmem_##name##_ibget(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void pshmem_ctx_##name##_ibget(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_ibput##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void pshmem_ctx_ibput##name(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void pshmem_ibget##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe); \
  void pshmem_ctx_ibget##name(shmem_ctx_t ctx, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Put with signal: a PE that sees the signal sees the data. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_put_signal(type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void pshmem_ctx_##name##_put_signal(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void pshmem_##name##_put_signal_nbi(type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void pshmem_ctx_##name##_put_signal_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_put##name##_signal(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void pshmem_ctx_put##name##_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void pshmem_put##name##_signal_nbi(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe); \
  void pshmem_ctx_put##name##_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
MEMSPAN_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void pshmem_putmem_signal(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
void pshmem_ctx_putmem_signal(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
void pshmem_putmem_signal_nbi(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
void pshmem_ctx_putmem_signal_nbi(shmem_ctx_t ctx, void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe);
void pshmem_signal_add(uint64_t* sig_addr, uint64_t signal, int pe);
void pshmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe);
void pshmem_signal_set(uint64_t* sig_addr, uint64_t signal, int pe);
void pshmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe);
uint64_t pshmem_signal_fetch(const uint64_t* sig_addr);
uint64_t pshmem_signal_wait_until(uint64_t* sig_addr, int cmp, uint64_t cmp_value);

/* Atomics on a PE's copy of a symmetric word. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type pshmem_##name##_atomic_fetch(const type* source, int pe); \
  type pshmem_ctx_##name##_atomic_fetch(shmem_ctx_t ctx, const type* source, int pe); \
  void pshmem_##name##_atomic_set(type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_set(shmem_ctx_t ctx, type* dest, type value, int pe); \
  type pshmem_##name##_atomic_swap(type* dest, type value, int pe); \
  type pshmem_ctx_##name##_atomic_swap(shmem_ctx_t ctx, type* dest, type value, int pe);
MEMSPAN_EXTENDED_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type pshmem_##name##_atomic_compare_swap(type* dest, type cond, type value, int pe); \
  type pshmem_ctx_##name##_atomic_compare_swap(shmem_ctx_t ctx, type* dest, type cond, type value, int pe); \
  type pshmem_##name##_atomic_fetch_inc(type* dest, int pe); \
  type pshmem_ctx_##name##_atomic_fetch_inc(shmem_ctx_t ctx, type* dest, int pe); \
  void pshmem_##name##_atomic_inc(type* dest, int pe); \
  void pshmem_ctx_##name##_atomic_inc(shmem_ctx_t ctx, type* dest, int pe); \
  type pshmem_##name##_atomic_fetch_add(type* dest, type value, int pe); \
  type pshmem_ctx_##name##_atomic_fetch_add(shmem_ctx_t ctx, type* dest, type value, int pe); \
  void pshmem_##name##_atomic_add(type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_add(shmem_ctx_t ctx, type* dest, type value, int pe);
MEMSPAN_STANDARD_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type pshmem_##name##_atomic_fetch_and(type* dest, type value, int pe); \
  type pshmem_ctx_##name##_atomic_fetch_and(shmem_ctx_t ctx, type* dest, type value, int pe); \
  void pshmem_##name##_atomic_and(type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_and(shmem_ctx_t ctx, type* dest, type value, int pe); \
  type pshmem_##name##_atomic_fetch_or(type* dest, type value, int pe); \
  type pshmem_ctx_##name##_atomic_fetch_or(shmem_ctx_t ctx, type* dest, type value, int pe); \
  void pshmem_##name##_atomic_or(type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_or(shmem_ctx_t ctx, type* dest, type value, int pe); \
  type pshmem_##name##_atomic_fetch_xor(type* dest, type value, int pe); \
  type pshmem_ctx_##name##_atomic_fetch_xor(shmem_ctx_t ctx, type* dest, type value, int pe); \
  void pshmem_##name##_atomic_xor(type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_xor(shmem_ctx_t ctx, type* dest, type value, int pe);
MEMSPAN_BITWISE_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Atomics whose result may come as late as the next quiet. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_atomic_fetch_nbi(type* fetch, const type* source, int pe); \
  void pshmem_ctx_##name##_atomic_fetch_nbi(shmem_ctx_t ctx, type* fetch, const type* source, int pe); \
  void pshmem_##name##_atomic_swap_nbi(type* fetch, type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_swap_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe);
MEMSPAN_EXTENDED_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_atomic_compare_swap_nbi(type* fetch, type* dest, type cond, type value, int pe); \
  void pshmem_ctx_##name##_atomic_compare_swap_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type cond, type value, int pe); \
  void pshmem_##name##_atomic_fetch_inc_nbi(type* fetch, type* dest, int pe); \
  void pshmem_ctx_##name##_atomic_fetch_inc_nbi(shmem_ctx_t ctx, type* fetch, type* dest, int pe); \
  void pshmem_##name##_atomic_fetch_add_nbi(type* fetch, type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_fetch_add_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe);
MEMSPAN_STANDARD_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_atomic_fetch_and_nbi(type* fetch, type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_fetch_and_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe); \
  void pshmem_##name##_atomic_fetch_or_nbi(type* fetch, type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_fetch_or_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe); \
  void pshmem_##name##_atomic_fetch_xor_nbi(type* fetch, type* dest, type value, int pe); \
  void pshmem_ctx_##name##_atomic_fetch_xor_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe);
MEMSPAN_BITWISE_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Waiting for, or looking at, symmetric words of the caller that other PEs change. An element whose
 * `status` is not 0 is left out; `status` may be NULL. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_wait_until(type* ivar, int cmp, type cmp_value); \
  int pshmem_##name##_test(type* ivar, int cmp, type cmp_value); \
  void pshmem_##name##_wait_until_all(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value); \
  size_t pshmem_##name##_wait_until_any(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value); \
  size_t pshmem_##name##_wait_until_some(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type cmp_value); \
  int pshmem_##name##_test_all(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value); \
  size_t pshmem_##name##_test_any(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value); \
  size_t pshmem_##name##_test_some(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type cmp_value); \
  void pshmem_##name##_wait_until_all_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values); \
  size_t pshmem_##name##_wait_until_any_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values); \
  size_t pshmem_##name##_wait_until_some_vector(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const type* cmp_values); \
  int pshmem_##name##_test_all_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values); \
  size_t pshmem_##name##_test_any_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values); \
  size_t pshmem_##name##_test_some_vector(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const type* cmp_values);
MEMSPAN_WAIT_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_

/* Locks, first come first served: one symmetric long, 0 on all PEs at first, and the same lock on all.
 * test_lock: 0 when the caller now has it, 1 when another has. clear_lock completes the default
 * context's operations first. */
void pshmem_set_lock(long* lock);
int pshmem_test_lock(long* lock);
void pshmem_clear_lock(long* lock);

/* fence orders, quiet completes what this PE sent before. pe_quiet: only towards the listed PEs. */
void pshmem_fence(void);
void pshmem_ctx_fence(shmem_ctx_t ctx);
void pshmem_quiet(void);
void pshmem_ctx_quiet(shmem_ctx_t ctx);
void pshmem_pe_quiet(const int* target_pes, size_t npes);
void pshmem_ctx_pe_quiet(shmem_ctx_t ctx, const int* target_pes, size_t npes);

/* Meeting. barrier_all completes the default context's operations first, sync only meets. */
void pshmem_barrier_all(void);
void pshmem_sync_all(void);
int pshmem_team_sync(shmem_team_t team);

/* Teams. A split is collective over the parent; PEs outside the new team get SHMEM_TEAM_INVALID. */
int pshmem_team_my_pe(shmem_team_t team);
int pshmem_team_n_pes(shmem_team_t team);
int pshmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t* config);
int pshmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);
int pshmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team);
int pshmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config, long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config, long yaxis_mask, shmem_team_t* yaxis_team);
void pshmem_team_destroy(shmem_team_t team);
void* pshmem_team_ptr(shmem_team_t team, const void* dest, int pe);

/* Contexts: PE numbers of the ctx forms count within the context's team. */
int pshmem_ctx_create(long options, shmem_ctx_t* ctx);
int pshmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t* ctx);
void pshmem_ctx_destroy(shmem_ctx_t ctx);
int pshmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t* team);
void pshmem_ctx_session_start(shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config, long config_mask);
void pshmem_ctx_session_stop(shmem_ctx_t ctx);

/* Collectives of a team; they return 0. inscan: member i gets the sum over members 0 to i; exscan: over
 * those before it. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  int pshmem_##name##_broadcast(shmem_team_t team, type* dest, const type* source, size_t nelems, int PE_root); \
  int pshmem_##name##_collect(shmem_team_t team, type* dest, const type* source, size_t nelems); \
  int pshmem_##name##_fcollect(shmem_team_t team, type* dest, const type* source, size_t nelems); \
  int pshmem_##name##_alltoall(shmem_team_t team, type* dest, const type* source, size_t nelems); \
  int pshmem_##name##_alltoalls(shmem_team_t team, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems); \
  int pshmem_##name##_max_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int pshmem_##name##_min_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce);
MEMSPAN_RMA_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  int pshmem_##name##_and_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int pshmem_##name##_or_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int pshmem_##name##_xor_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce);
MEMSPAN_BITWISE_REDUCE_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  int pshmem_##name##_sum_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int pshmem_##name##_prod_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce); \
  int pshmem_##name##_sum_inscan(shmem_team_t team, type* dest, const type* source, size_t nelems); \
  int pshmem_##name##_sum_exscan(shmem_team_t team, type* dest, const type* source, size_t nelems);
MEMSPAN_ARITHMETIC_REDUCE_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
int pshmem_broadcastmem(shmem_team_t team, void* dest, const void* source, size_t nelems, int PE_root);
int pshmem_collectmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int pshmem_fcollectmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int pshmem_alltoallmem(shmem_team_t team, void* dest, const void* source, size_t nelems);
int pshmem_alltoallsmem(shmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems);

/* Deprecated: wait until the word is not `cmp_value`, and waits for longs. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_wait(type* ivar, type cmp_value);
MEMSPAN_DEPRECATED_WAIT_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void pshmem_wait(long* ivar, long cmp_value);
void pshmem_wait_until(long* ivar, int cmp, long cmp_value);

/* Deprecated: collectives of an active set, the PEs PE_start + i * 2^logPE_stride. pSync: a symmetric
 * array of the SYNC_SIZE of the call, all SHMEM_SYNC_VALUE, in no other use during it. broadcast leaves
 * the root's dest unchanged. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_broadcast##name(void* dest, const void* source, size_t nelems, int PE_root, int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void pshmem_collect##name(void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void pshmem_fcollect##name(void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void pshmem_alltoall##name(void* dest, const void* source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long* pSync); \
  void pshmem_alltoalls##name(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start, int logPE_stride, int PE_size, long* pSync);
MEMSPAN_ACTIVE_SET_SIZES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_and_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync); \
  void pshmem_##name##_or_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync); \
  void pshmem_##name##_xor_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync);
MEMSPAN_TO_ALL_BITWISE_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_max_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync); \
  void pshmem_##name##_min_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync);
MEMSPAN_TO_ALL_ORDERED_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  void pshmem_##name##_sum_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync); \
  void pshmem_##name##_prod_to_all(type* dest, const type* source, int nreduce, int PE_start, int logPE_stride, int PE_size, type* pWrk, long* pSync);
MEMSPAN_TO_ALL_ARITHMETIC_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
void pshmem_barrier(int PE_start, int logPE_stride, int PE_size, long* pSync);
void pshmem_sync(int PE_start, int logPE_stride, int PE_size, long* pSync);

/* Deprecated names of atomics. */
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type pshmem_##name##_fetch(const type* source, int pe); \
  void pshmem_##name##_set(type* dest, type value, int pe); \
  type pshmem_##name##_swap(type* dest, type value, int pe);
MEMSPAN_EXTENDED_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
#define MEMSPAN_DECLARE_(name, type, a, b) \
  type pshmem_##name##_cswap(type* dest, type cond, type value, int pe); \
  type pshmem_##name##_fadd(type* dest, type value, int pe); \
  type pshmem_##name##_finc(type* dest, int pe); \
  void pshmem_##name##_add(type* dest, type value, int pe); \
  void pshmem_##name##_inc(type* dest, int pe);
MEMSPAN_STANDARD_AMO_TYPES_(MEMSPAN_DECLARE_, , )
#undef MEMSPAN_DECLARE_
long pshmem_swap(long* dest, long value, int pe);

/* Deprecated, or removed from the standard: other names, and caches that need no care any more. */
void pstart_pes(int npes);
int p_my_pe(void);
int p_num_pes(void);
void* pshmalloc(size_t size);
void* pshmemalign(size_t alignment, size_t size);
void* pshrealloc(void* ptr, size_t size);
void pshfree(void* ptr);
void pshmem_clear_cache_inv(void);
void pshmem_set_cache_inv(void);
void pshmem_clear_cache_line_inv(void* dest);
void pshmem_set_cache_line_inv(void* dest);
void pshmem_udcflush(void);
void pshmem_udcflush_line(void* dest);

#ifdef __cplusplus
}
#endif
/* clang-format on */

#endif /* MEMSPAN_OPENSHMEM_PSHMEM_H */
