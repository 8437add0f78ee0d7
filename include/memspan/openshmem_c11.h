/* SPDX-License-Identifier: Apache-2.0
 *
 * The type-generic names of OpenSHMEM as C11 selections. Included by <shmem.h>.
 *
 * shmem_put(dest, ...) is shmem_TYPE_put(dest, ...) for the type that dest points to, with a context
 * in front shmem_ctx_TYPE_put. An argument of another type does not compile. Units, ownership, threads
 * and errors are those of the functions chosen, in <shmem.h>.
 *
 * Written by tools/dev/generate_openshmem.py; change that or types.def, not this file.
 */
#ifndef MEMSPAN_OPENSHMEM_C11_H
#define MEMSPAN_OPENSHMEM_C11_H

#include <memspan/openshmem_types.h>

/* Declared so that calling it with arguments is an error; it does not exist. */
void memspan_no_such_type(void);

/* clang-format off */
#define MEMSPAN_FIRST_(...) MEMSPAN_FIRST_OF_(__VA_ARGS__, 0)
#define MEMSPAN_FIRST_OF_(first, ...) first
#define MEMSPAN_SECOND_(...) MEMSPAN_SECOND_OF_(__VA_ARGS__, 0, 0)
#define MEMSPAN_SECOND_OF_(first, second, ...) second

/* By the type that `pointer` points to; what the set does not have does not compile. */
#define MEMSPAN_CASE_(name, type, before, after) \
  type*: before##name##after, const type*: before##name##after,
#define MEMSPAN_SELECT_(pointer, set, before, after) \
  _Generic(pointer, set(MEMSPAN_CASE_, before, after) default: memspan_no_such_type)
#define MEMSPAN_BY_FIRST_(set, after, ...) \
  MEMSPAN_SELECT_(MEMSPAN_FIRST_(__VA_ARGS__), set, shmem_, after)(__VA_ARGS__)
#define MEMSPAN_BY_SECOND_(set, after, ...) \
  MEMSPAN_SELECT_(MEMSPAN_SECOND_(__VA_ARGS__), set, shmem_, after)(__VA_ARGS__)
#define MEMSPAN_WITH_CONTEXT_(set, after, ...) \
  _Generic(MEMSPAN_FIRST_(__VA_ARGS__), \
    shmem_ctx_t: MEMSPAN_SELECT_(MEMSPAN_SECOND_(__VA_ARGS__), set, shmem_ctx_, after), \
    default: MEMSPAN_SELECT_(MEMSPAN_FIRST_(__VA_ARGS__), set, shmem_, after))(__VA_ARGS__)

#define shmem_p(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _p, __VA_ARGS__)
#define shmem_g(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _g, __VA_ARGS__)
#define shmem_put(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _put, __VA_ARGS__)
#define shmem_put_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _put_nbi, __VA_ARGS__)
#define shmem_get(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _get, __VA_ARGS__)
#define shmem_get_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _get_nbi, __VA_ARGS__)
#define shmem_iput(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _iput, __VA_ARGS__)
#define shmem_iget(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _iget, __VA_ARGS__)
#define shmem_ibput(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _ibput, __VA_ARGS__)
#define shmem_ibget(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _ibget, __VA_ARGS__)
#define shmem_put_signal(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_RMA_DISTINCT_, _put_signal_nbi, __VA_ARGS__)
#define shmem_atomic_fetch(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_EXTENDED_AMO_DISTINCT_, _atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_EXTENDED_AMO_DISTINCT_, _atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_EXTENDED_AMO_DISTINCT_, _atomic_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_STANDARD_AMO_DISTINCT_, _atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_STANDARD_AMO_DISTINCT_, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_inc(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_STANDARD_AMO_DISTINCT_, _atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_STANDARD_AMO_DISTINCT_, _atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_add(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_STANDARD_AMO_DISTINCT_, _atomic_add, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_and(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_or(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_xor(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_EXTENDED_AMO_DISTINCT_, _atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_EXTENDED_AMO_DISTINCT_, _atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_STANDARD_AMO_DISTINCT_, _atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_STANDARD_AMO_DISTINCT_, _atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_STANDARD_AMO_DISTINCT_, _atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) MEMSPAN_WITH_CONTEXT_(MEMSPAN_BITWISE_AMO_DISTINCT_, _atomic_fetch_xor_nbi, __VA_ARGS__)
#define shmem_wait_until(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _wait_until, __VA_ARGS__)
#define shmem_test(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _test, __VA_ARGS__)
#define shmem_wait_until_all(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _wait_until_some, __VA_ARGS__)
#define shmem_test_all(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _test_all, __VA_ARGS__)
#define shmem_test_any(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _test_any, __VA_ARGS__)
#define shmem_test_some(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _test_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _wait_until_some_vector, __VA_ARGS__)
#define shmem_test_all_vector(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...) MEMSPAN_BY_FIRST_(MEMSPAN_WAIT_DISTINCT_, _test_some_vector, __VA_ARGS__)
#define shmem_broadcast(...) MEMSPAN_BY_SECOND_(MEMSPAN_RMA_DISTINCT_, _broadcast, __VA_ARGS__)
#define shmem_collect(...) MEMSPAN_BY_SECOND_(MEMSPAN_RMA_DISTINCT_, _collect, __VA_ARGS__)
#define shmem_fcollect(...) MEMSPAN_BY_SECOND_(MEMSPAN_RMA_DISTINCT_, _fcollect, __VA_ARGS__)
#define shmem_alltoall(...) MEMSPAN_BY_SECOND_(MEMSPAN_RMA_DISTINCT_, _alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) MEMSPAN_BY_SECOND_(MEMSPAN_RMA_DISTINCT_, _alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...) MEMSPAN_BY_SECOND_(MEMSPAN_BITWISE_REDUCE_DISTINCT_, _and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) MEMSPAN_BY_SECOND_(MEMSPAN_BITWISE_REDUCE_DISTINCT_, _or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) MEMSPAN_BY_SECOND_(MEMSPAN_BITWISE_REDUCE_DISTINCT_, _xor_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) MEMSPAN_BY_SECOND_(MEMSPAN_RMA_DISTINCT_, _max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) MEMSPAN_BY_SECOND_(MEMSPAN_RMA_DISTINCT_, _min_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) MEMSPAN_BY_SECOND_(MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_, _sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) MEMSPAN_BY_SECOND_(MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_, _prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...) MEMSPAN_BY_SECOND_(MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_, _sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...) MEMSPAN_BY_SECOND_(MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_, _sum_exscan, __VA_ARGS__)
#define shmem_fetch(...) MEMSPAN_BY_FIRST_(MEMSPAN_EXTENDED_AMO_DISTINCT_, _fetch, __VA_ARGS__)
#define shmem_set(...) MEMSPAN_BY_FIRST_(MEMSPAN_EXTENDED_AMO_DISTINCT_, _set, __VA_ARGS__)
#define shmem_swap(...) MEMSPAN_BY_FIRST_(MEMSPAN_EXTENDED_AMO_DISTINCT_, _swap, __VA_ARGS__)
#define shmem_cswap(...) MEMSPAN_BY_FIRST_(MEMSPAN_STANDARD_AMO_DISTINCT_, _cswap, __VA_ARGS__)
#define shmem_fadd(...) MEMSPAN_BY_FIRST_(MEMSPAN_STANDARD_AMO_DISTINCT_, _fadd, __VA_ARGS__)
#define shmem_finc(...) MEMSPAN_BY_FIRST_(MEMSPAN_STANDARD_AMO_DISTINCT_, _finc, __VA_ARGS__)
#define shmem_add(...) MEMSPAN_BY_FIRST_(MEMSPAN_STANDARD_AMO_DISTINCT_, _add, __VA_ARGS__)
#define shmem_inc(...) MEMSPAN_BY_FIRST_(MEMSPAN_STANDARD_AMO_DISTINCT_, _inc, __VA_ARGS__)

#define shmem_sync(...) _Generic(MEMSPAN_FIRST_(__VA_ARGS__), shmem_team_t: shmem_team_sync, default: shmem_sync)(__VA_ARGS__)
#define shmem_signal_add(...) _Generic(MEMSPAN_FIRST_(__VA_ARGS__), shmem_ctx_t: shmem_ctx_signal_add, default: shmem_signal_add)(__VA_ARGS__)
#define shmem_signal_set(...) _Generic(MEMSPAN_FIRST_(__VA_ARGS__), shmem_ctx_t: shmem_ctx_signal_set, default: shmem_signal_set)(__VA_ARGS__)
/* clang-format on */

#endif /* MEMSPAN_OPENSHMEM_C11_H */
