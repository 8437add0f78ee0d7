/* SPDX-License-Identifier: Apache-2.0
 *
 * The type-generic names of OpenSHMEM as C++ overloads. Included by <shmem.h>.
 *
 * shmem_put(dest, ...) is shmem_TYPE_put(dest, ...) for the type that dest points to, with a context
 * in front shmem_ctx_TYPE_put. An argument of another type does not compile. Units, ownership, threads
 * and errors are those of the functions chosen, in <shmem.h>.
 *
 * Written by tools/dev/generate_openshmem.py; change that or types.def, not this file.
 */
#ifndef MEMSPAN_OPENSHMEM_CXX_H
#define MEMSPAN_OPENSHMEM_CXX_H

#include <memspan/openshmem_types.h>

/* clang-format off */
extern "C++" {

#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* dest, type value, int pe) { \
    shmem_##name##stem(dest, value, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    shmem_ctx_##name##stem(ctx, dest, value, pe); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_p, _p)
MEMSPAN_EXTENDED_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_set, _atomic_set)
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_add, _atomic_add)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_and, _atomic_and)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_or, _atomic_or)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_xor, _atomic_xor)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline type generic(const type* source, int pe) { \
    return shmem_##name##stem(source, pe); \
  } \
  inline type generic(shmem_ctx_t ctx, const type* source, int pe) { \
    return shmem_ctx_##name##stem(ctx, source, pe); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_g, _g)
MEMSPAN_EXTENDED_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch, _atomic_fetch)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* dest, const type* source, size_t nelems, int pe) { \
    shmem_##name##stem(dest, source, nelems, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe) { \
    shmem_ctx_##name##stem(ctx, dest, source, nelems, pe); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_put, _put)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_put_nbi, _put_nbi)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_get, _get)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_get_nbi, _get_nbi)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    shmem_##name##stem(dest, source, dst, sst, nelems, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    shmem_ctx_##name##stem(ctx, dest, source, dst, sst, nelems, pe); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_iput, _iput)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_iget, _iget)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { \
    shmem_##name##stem(dest, source, dst, sst, bsize, nblocks, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { \
    shmem_ctx_##name##stem(ctx, dest, source, dst, sst, bsize, nblocks, pe); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_ibput, _ibput)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_ibget, _ibget)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) { \
    shmem_##name##stem(dest, source, nelems, sig_addr, signal, sig_op, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) { \
    shmem_ctx_##name##stem(ctx, dest, source, nelems, sig_addr, signal, sig_op, pe); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_put_signal, _put_signal)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_put_signal_nbi, _put_signal_nbi)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline type generic(type* dest, type value, int pe) { \
    return shmem_##name##stem(dest, value, pe); \
  } \
  inline type generic(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    return shmem_ctx_##name##stem(ctx, dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_swap, _atomic_swap)
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_add, _atomic_fetch_add)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_and, _atomic_fetch_and)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_or, _atomic_fetch_or)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_xor, _atomic_fetch_xor)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline type generic(type* dest, type cond, type value, int pe) { \
    return shmem_##name##stem(dest, cond, value, pe); \
  } \
  inline type generic(shmem_ctx_t ctx, type* dest, type cond, type value, int pe) { \
    return shmem_ctx_##name##stem(ctx, dest, cond, value, pe); \
  }
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_compare_swap, _atomic_compare_swap)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline type generic(type* dest, int pe) { \
    return shmem_##name##stem(dest, pe); \
  } \
  inline type generic(shmem_ctx_t ctx, type* dest, int pe) { \
    return shmem_ctx_##name##stem(ctx, dest, pe); \
  }
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_inc, _atomic_fetch_inc)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* dest, int pe) { \
    shmem_##name##stem(dest, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* dest, int pe) { \
    shmem_ctx_##name##stem(ctx, dest, pe); \
  }
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_inc, _atomic_inc)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* fetch, const type* source, int pe) { \
    shmem_##name##stem(fetch, source, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* fetch, const type* source, int pe) { \
    shmem_ctx_##name##stem(ctx, fetch, source, pe); \
  }
MEMSPAN_EXTENDED_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_nbi, _atomic_fetch_nbi)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* fetch, type* dest, type value, int pe) { \
    shmem_##name##stem(fetch, dest, value, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe) { \
    shmem_ctx_##name##stem(ctx, fetch, dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_swap_nbi, _atomic_swap_nbi)
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_add_nbi, _atomic_fetch_add_nbi)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_and_nbi, _atomic_fetch_and_nbi)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_or_nbi, _atomic_fetch_or_nbi)
MEMSPAN_BITWISE_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_xor_nbi, _atomic_fetch_xor_nbi)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* fetch, type* dest, type cond, type value, int pe) { \
    shmem_##name##stem(fetch, dest, cond, value, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* fetch, type* dest, type cond, type value, int pe) { \
    shmem_ctx_##name##stem(ctx, fetch, dest, cond, value, pe); \
  }
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_compare_swap_nbi, _atomic_compare_swap_nbi)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* fetch, type* dest, int pe) { \
    shmem_##name##stem(fetch, dest, pe); \
  } \
  inline void generic(shmem_ctx_t ctx, type* fetch, type* dest, int pe) { \
    shmem_ctx_##name##stem(ctx, fetch, dest, pe); \
  }
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_atomic_fetch_inc_nbi, _atomic_fetch_inc_nbi)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* ivar, int cmp, type cmp_value) { \
    shmem_##name##stem(ivar, cmp, cmp_value); \
  }
MEMSPAN_WAIT_DISTINCT_BUT_LONG_(MEMSPAN_OVERLOAD_, shmem_wait_until, _wait_until)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline int generic(type* ivar, int cmp, type cmp_value) { \
    return shmem_##name##stem(ivar, cmp, cmp_value); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_test, _test)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value) { \
    shmem_##name##stem(ivars, nelems, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_wait_until_all, _wait_until_all)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline size_t generic(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value) { \
    return shmem_##name##stem(ivars, nelems, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_wait_until_any, _wait_until_any)
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_test_any, _test_any)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline size_t generic(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type cmp_value) { \
    return shmem_##name##stem(ivars, nelems, indices, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_wait_until_some, _wait_until_some)
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_test_some, _test_some)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline int generic(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value) { \
    return shmem_##name##stem(ivars, nelems, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_test_all, _test_all)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values) { \
    shmem_##name##stem(ivars, nelems, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_wait_until_all_vector, _wait_until_all_vector)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline size_t generic(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values) { \
    return shmem_##name##stem(ivars, nelems, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_wait_until_any_vector, _wait_until_any_vector)
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_test_any_vector, _test_any_vector)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline size_t generic(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const type* cmp_values) { \
    return shmem_##name##stem(ivars, nelems, indices, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_wait_until_some_vector, _wait_until_some_vector)
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_test_some_vector, _test_some_vector)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline int generic(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values) { \
    return shmem_##name##stem(ivars, nelems, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_test_all_vector, _test_all_vector)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline int generic(shmem_team_t team, type* dest, const type* source, size_t nelems, int PE_root) { \
    return shmem_##name##stem(team, dest, source, nelems, PE_root); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_broadcast, _broadcast)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline int generic(shmem_team_t team, type* dest, const type* source, size_t nelems) { \
    return shmem_##name##stem(team, dest, source, nelems); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_collect, _collect)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_fcollect, _fcollect)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_alltoall, _alltoall)
MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_sum_inscan, _sum_inscan)
MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_sum_exscan, _sum_exscan)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline int generic(shmem_team_t team, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) { \
    return shmem_##name##stem(team, dest, source, dst, sst, nelems); \
  }
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_alltoalls, _alltoalls)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline int generic(shmem_team_t team, type* dest, const type* source, size_t nreduce) { \
    return shmem_##name##stem(team, dest, source, nreduce); \
  }
MEMSPAN_BITWISE_REDUCE_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_and_reduce, _and_reduce)
MEMSPAN_BITWISE_REDUCE_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_or_reduce, _or_reduce)
MEMSPAN_BITWISE_REDUCE_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_xor_reduce, _xor_reduce)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_max_reduce, _max_reduce)
MEMSPAN_RMA_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_min_reduce, _min_reduce)
MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_sum_reduce, _sum_reduce)
MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_prod_reduce, _prod_reduce)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline type generic(const type* source, int pe) { \
    return shmem_##name##stem(source, pe); \
  }
MEMSPAN_EXTENDED_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_fetch, _fetch)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* dest, type value, int pe) { \
    shmem_##name##stem(dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_set, _set)
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_add, _add)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline type generic(type* dest, type value, int pe) { \
    return shmem_##name##stem(dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_DISTINCT_BUT_LONG_(MEMSPAN_OVERLOAD_, shmem_swap, _swap)
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_fadd, _fadd)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline type generic(type* dest, type cond, type value, int pe) { \
    return shmem_##name##stem(dest, cond, value, pe); \
  }
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_cswap, _cswap)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline type generic(type* dest, int pe) { \
    return shmem_##name##stem(dest, pe); \
  }
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_finc, _finc)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type, generic, stem) \
  inline void generic(type* dest, int pe) { \
    shmem_##name##stem(dest, pe); \
  }
MEMSPAN_STANDARD_AMO_DISTINCT_(MEMSPAN_OVERLOAD_, shmem_inc, _inc)
#undef MEMSPAN_OVERLOAD_

inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }
inline void shmem_signal_add(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) { shmem_ctx_signal_add(ctx, sig_addr, signal, pe); }
inline void shmem_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) { shmem_ctx_signal_set(ctx, sig_addr, signal, pe); }

}
/* clang-format on */

#endif /* MEMSPAN_OPENSHMEM_CXX_H */
