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

/* clang-format off */
extern "C++" {

#define MEMSPAN_RMA_SET_(X) \
  X(float, float) \
  X(double, double) \
  X(longdouble, long double) \
  X(char, char) \
  X(schar, signed char) \
  X(short, short) \
  X(int, int) \
  X(long, long) \
  X(longlong, long long) \
  X(uchar, unsigned char) \
  X(ushort, unsigned short) \
  X(uint, unsigned int) \
  X(ulong, unsigned long) \
  X(ulonglong, unsigned long long)
#define MEMSPAN_EXTENDED_AMO_SET_(X) \
  X(float, float) \
  X(double, double) \
  X(int, int) \
  X(long, long) \
  X(longlong, long long) \
  X(uint, unsigned int) \
  X(ulong, unsigned long) \
  X(ulonglong, unsigned long long)
#define MEMSPAN_STANDARD_AMO_SET_(X) \
  X(int, int) \
  X(long, long) \
  X(longlong, long long) \
  X(uint, unsigned int) \
  X(ulong, unsigned long) \
  X(ulonglong, unsigned long long)
#define MEMSPAN_WAIT_BUT_LONG_SET_(X) \
  X(short, short) \
  X(int, int) \
  X(longlong, long long) \
  X(ushort, unsigned short) \
  X(uint, unsigned int) \
  X(ulong, unsigned long) \
  X(ulonglong, unsigned long long)
#define MEMSPAN_WAIT_SET_(X) \
  X(short, short) \
  X(int, int) \
  X(long, long) \
  X(longlong, long long) \
  X(ushort, unsigned short) \
  X(uint, unsigned int) \
  X(ulong, unsigned long) \
  X(ulonglong, unsigned long long)
#define MEMSPAN_BITWISE_REDUCE_SET_(X) \
  X(int8, int8_t) \
  X(short, short) \
  X(int, int) \
  X(long, long) \
  X(longlong, long long) \
  X(uchar, unsigned char) \
  X(ushort, unsigned short) \
  X(uint, unsigned int) \
  X(ulong, unsigned long) \
  X(ulonglong, unsigned long long)
#define MEMSPAN_ARITHMETIC_REDUCE_SET_(X) \
  X(float, float) \
  X(double, double) \
  X(longdouble, long double) \
  X(char, char) \
  X(schar, signed char) \
  X(short, short) \
  X(int, int) \
  X(long, long) \
  X(longlong, long long) \
  X(uchar, unsigned char) \
  X(ushort, unsigned short) \
  X(uint, unsigned int) \
  X(ulong, unsigned long) \
  X(ulonglong, unsigned long long) \
  X(complexd, memspan_complexd) \
  X(complexf, memspan_complexf)
#define MEMSPAN_EXTENDED_AMO_BUT_LONG_SET_(X) \
  X(float, float) \
  X(double, double) \
  X(int, int) \
  X(longlong, long long) \
  X(uint, unsigned int) \
  X(ulong, unsigned long) \
  X(ulonglong, unsigned long long)

#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_p(type* dest, type value, int pe) { \
    shmem_##name##_p(dest, value, pe); \
  } \
  inline void shmem_p(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    shmem_ctx_##name##_p(ctx, dest, value, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_g(const type* source, int pe) { \
    return shmem_##name##_g(source, pe); \
  } \
  inline type shmem_g(shmem_ctx_t ctx, const type* source, int pe) { \
    return shmem_ctx_##name##_g(ctx, source, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_put(type* dest, const type* source, size_t nelems, int pe) { \
    shmem_##name##_put(dest, source, nelems, pe); \
  } \
  inline void shmem_put(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe) { \
    shmem_ctx_##name##_put(ctx, dest, source, nelems, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_put_nbi(type* dest, const type* source, size_t nelems, int pe) { \
    shmem_##name##_put_nbi(dest, source, nelems, pe); \
  } \
  inline void shmem_put_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe) { \
    shmem_ctx_##name##_put_nbi(ctx, dest, source, nelems, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_get(type* dest, const type* source, size_t nelems, int pe) { \
    shmem_##name##_get(dest, source, nelems, pe); \
  } \
  inline void shmem_get(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe) { \
    shmem_ctx_##name##_get(ctx, dest, source, nelems, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_get_nbi(type* dest, const type* source, size_t nelems, int pe) { \
    shmem_##name##_get_nbi(dest, source, nelems, pe); \
  } \
  inline void shmem_get_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, int pe) { \
    shmem_ctx_##name##_get_nbi(ctx, dest, source, nelems, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_iput(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    shmem_##name##_iput(dest, source, dst, sst, nelems, pe); \
  } \
  inline void shmem_iput(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    shmem_ctx_##name##_iput(ctx, dest, source, dst, sst, nelems, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_iget(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    shmem_##name##_iget(dest, source, dst, sst, nelems, pe); \
  } \
  inline void shmem_iget(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) { \
    shmem_ctx_##name##_iget(ctx, dest, source, dst, sst, nelems, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_ibput(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { \
    shmem_##name##_ibput(dest, source, dst, sst, bsize, nblocks, pe); \
  } \
  inline void shmem_ibput(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { \
    shmem_ctx_##name##_ibput(ctx, dest, source, dst, sst, bsize, nblocks, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_ibget(type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { \
    shmem_##name##_ibget(dest, source, dst, sst, bsize, nblocks, pe); \
  } \
  inline void shmem_ibget(shmem_ctx_t ctx, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) { \
    shmem_ctx_##name##_ibget(ctx, dest, source, dst, sst, bsize, nblocks, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_put_signal(type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) { \
    shmem_##name##_put_signal(dest, source, nelems, sig_addr, signal, sig_op, pe); \
  } \
  inline void shmem_put_signal(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) { \
    shmem_ctx_##name##_put_signal(ctx, dest, source, nelems, sig_addr, signal, sig_op, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_put_signal_nbi(type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) { \
    shmem_##name##_put_signal_nbi(dest, source, nelems, sig_addr, signal, sig_op, pe); \
  } \
  inline void shmem_put_signal_nbi(shmem_ctx_t ctx, type* dest, const type* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) { \
    shmem_ctx_##name##_put_signal_nbi(ctx, dest, source, nelems, sig_addr, signal, sig_op, pe); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_atomic_fetch(const type* source, int pe) { \
    return shmem_##name##_atomic_fetch(source, pe); \
  } \
  inline type shmem_atomic_fetch(shmem_ctx_t ctx, const type* source, int pe) { \
    return shmem_ctx_##name##_atomic_fetch(ctx, source, pe); \
  }
MEMSPAN_EXTENDED_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_set(type* dest, type value, int pe) { \
    shmem_##name##_atomic_set(dest, value, pe); \
  } \
  inline void shmem_atomic_set(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_set(ctx, dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_atomic_swap(type* dest, type value, int pe) { \
    return shmem_##name##_atomic_swap(dest, value, pe); \
  } \
  inline type shmem_atomic_swap(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    return shmem_ctx_##name##_atomic_swap(ctx, dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_atomic_compare_swap(type* dest, type cond, type value, int pe) { \
    return shmem_##name##_atomic_compare_swap(dest, cond, value, pe); \
  } \
  inline type shmem_atomic_compare_swap(shmem_ctx_t ctx, type* dest, type cond, type value, int pe) { \
    return shmem_ctx_##name##_atomic_compare_swap(ctx, dest, cond, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_atomic_fetch_inc(type* dest, int pe) { \
    return shmem_##name##_atomic_fetch_inc(dest, pe); \
  } \
  inline type shmem_atomic_fetch_inc(shmem_ctx_t ctx, type* dest, int pe) { \
    return shmem_ctx_##name##_atomic_fetch_inc(ctx, dest, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_inc(type* dest, int pe) { \
    shmem_##name##_atomic_inc(dest, pe); \
  } \
  inline void shmem_atomic_inc(shmem_ctx_t ctx, type* dest, int pe) { \
    shmem_ctx_##name##_atomic_inc(ctx, dest, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_atomic_fetch_add(type* dest, type value, int pe) { \
    return shmem_##name##_atomic_fetch_add(dest, value, pe); \
  } \
  inline type shmem_atomic_fetch_add(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    return shmem_ctx_##name##_atomic_fetch_add(ctx, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_add(type* dest, type value, int pe) { \
    shmem_##name##_atomic_add(dest, value, pe); \
  } \
  inline void shmem_atomic_add(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_add(ctx, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_atomic_fetch_and(type* dest, type value, int pe) { \
    return shmem_##name##_atomic_fetch_and(dest, value, pe); \
  } \
  inline type shmem_atomic_fetch_and(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    return shmem_ctx_##name##_atomic_fetch_and(ctx, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_and(type* dest, type value, int pe) { \
    shmem_##name##_atomic_and(dest, value, pe); \
  } \
  inline void shmem_atomic_and(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_and(ctx, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_atomic_fetch_or(type* dest, type value, int pe) { \
    return shmem_##name##_atomic_fetch_or(dest, value, pe); \
  } \
  inline type shmem_atomic_fetch_or(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    return shmem_ctx_##name##_atomic_fetch_or(ctx, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_or(type* dest, type value, int pe) { \
    shmem_##name##_atomic_or(dest, value, pe); \
  } \
  inline void shmem_atomic_or(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_or(ctx, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_atomic_fetch_xor(type* dest, type value, int pe) { \
    return shmem_##name##_atomic_fetch_xor(dest, value, pe); \
  } \
  inline type shmem_atomic_fetch_xor(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    return shmem_ctx_##name##_atomic_fetch_xor(ctx, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_xor(type* dest, type value, int pe) { \
    shmem_##name##_atomic_xor(dest, value, pe); \
  } \
  inline void shmem_atomic_xor(shmem_ctx_t ctx, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_xor(ctx, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_fetch_nbi(type* fetch, const type* source, int pe) { \
    shmem_##name##_atomic_fetch_nbi(fetch, source, pe); \
  } \
  inline void shmem_atomic_fetch_nbi(shmem_ctx_t ctx, type* fetch, const type* source, int pe) { \
    shmem_ctx_##name##_atomic_fetch_nbi(ctx, fetch, source, pe); \
  }
MEMSPAN_EXTENDED_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_swap_nbi(type* fetch, type* dest, type value, int pe) { \
    shmem_##name##_atomic_swap_nbi(fetch, dest, value, pe); \
  } \
  inline void shmem_atomic_swap_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_swap_nbi(ctx, fetch, dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_compare_swap_nbi(type* fetch, type* dest, type cond, type value, int pe) { \
    shmem_##name##_atomic_compare_swap_nbi(fetch, dest, cond, value, pe); \
  } \
  inline void shmem_atomic_compare_swap_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type cond, type value, int pe) { \
    shmem_ctx_##name##_atomic_compare_swap_nbi(ctx, fetch, dest, cond, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_fetch_inc_nbi(type* fetch, type* dest, int pe) { \
    shmem_##name##_atomic_fetch_inc_nbi(fetch, dest, pe); \
  } \
  inline void shmem_atomic_fetch_inc_nbi(shmem_ctx_t ctx, type* fetch, type* dest, int pe) { \
    shmem_ctx_##name##_atomic_fetch_inc_nbi(ctx, fetch, dest, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_fetch_add_nbi(type* fetch, type* dest, type value, int pe) { \
    shmem_##name##_atomic_fetch_add_nbi(fetch, dest, value, pe); \
  } \
  inline void shmem_atomic_fetch_add_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_fetch_add_nbi(ctx, fetch, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_fetch_and_nbi(type* fetch, type* dest, type value, int pe) { \
    shmem_##name##_atomic_fetch_and_nbi(fetch, dest, value, pe); \
  } \
  inline void shmem_atomic_fetch_and_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_fetch_and_nbi(ctx, fetch, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_fetch_or_nbi(type* fetch, type* dest, type value, int pe) { \
    shmem_##name##_atomic_fetch_or_nbi(fetch, dest, value, pe); \
  } \
  inline void shmem_atomic_fetch_or_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_fetch_or_nbi(ctx, fetch, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_atomic_fetch_xor_nbi(type* fetch, type* dest, type value, int pe) { \
    shmem_##name##_atomic_fetch_xor_nbi(fetch, dest, value, pe); \
  } \
  inline void shmem_atomic_fetch_xor_nbi(shmem_ctx_t ctx, type* fetch, type* dest, type value, int pe) { \
    shmem_ctx_##name##_atomic_fetch_xor_nbi(ctx, fetch, dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_wait_until(type* ivar, int cmp, type cmp_value) { \
    shmem_##name##_wait_until(ivar, cmp, cmp_value); \
  }
MEMSPAN_WAIT_BUT_LONG_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_test(type* ivar, int cmp, type cmp_value) { \
    return shmem_##name##_test(ivar, cmp, cmp_value); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_wait_until_all(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value) { \
    shmem_##name##_wait_until_all(ivars, nelems, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline size_t shmem_wait_until_any(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value) { \
    return shmem_##name##_wait_until_any(ivars, nelems, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline size_t shmem_wait_until_some(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type cmp_value) { \
    return shmem_##name##_wait_until_some(ivars, nelems, indices, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_test_all(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value) { \
    return shmem_##name##_test_all(ivars, nelems, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline size_t shmem_test_any(type* ivars, size_t nelems, const int* status, int cmp, type cmp_value) { \
    return shmem_##name##_test_any(ivars, nelems, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline size_t shmem_test_some(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, type cmp_value) { \
    return shmem_##name##_test_some(ivars, nelems, indices, status, cmp, cmp_value); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_wait_until_all_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values) { \
    shmem_##name##_wait_until_all_vector(ivars, nelems, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline size_t shmem_wait_until_any_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values) { \
    return shmem_##name##_wait_until_any_vector(ivars, nelems, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline size_t shmem_wait_until_some_vector(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const type* cmp_values) { \
    return shmem_##name##_wait_until_some_vector(ivars, nelems, indices, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_test_all_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values) { \
    return shmem_##name##_test_all_vector(ivars, nelems, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline size_t shmem_test_any_vector(type* ivars, size_t nelems, const int* status, int cmp, const type* cmp_values) { \
    return shmem_##name##_test_any_vector(ivars, nelems, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline size_t shmem_test_some_vector(type* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const type* cmp_values) { \
    return shmem_##name##_test_some_vector(ivars, nelems, indices, status, cmp, cmp_values); \
  }
MEMSPAN_WAIT_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_broadcast(shmem_team_t team, type* dest, const type* source, size_t nelems, int PE_root) { \
    return shmem_##name##_broadcast(team, dest, source, nelems, PE_root); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_collect(shmem_team_t team, type* dest, const type* source, size_t nelems) { \
    return shmem_##name##_collect(team, dest, source, nelems); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_fcollect(shmem_team_t team, type* dest, const type* source, size_t nelems) { \
    return shmem_##name##_fcollect(team, dest, source, nelems); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_alltoall(shmem_team_t team, type* dest, const type* source, size_t nelems) { \
    return shmem_##name##_alltoall(team, dest, source, nelems); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_alltoalls(shmem_team_t team, type* dest, const type* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) { \
    return shmem_##name##_alltoalls(team, dest, source, dst, sst, nelems); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_and_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce) { \
    return shmem_##name##_and_reduce(team, dest, source, nreduce); \
  }
MEMSPAN_BITWISE_REDUCE_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_or_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce) { \
    return shmem_##name##_or_reduce(team, dest, source, nreduce); \
  }
MEMSPAN_BITWISE_REDUCE_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_xor_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce) { \
    return shmem_##name##_xor_reduce(team, dest, source, nreduce); \
  }
MEMSPAN_BITWISE_REDUCE_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_max_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce) { \
    return shmem_##name##_max_reduce(team, dest, source, nreduce); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_min_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce) { \
    return shmem_##name##_min_reduce(team, dest, source, nreduce); \
  }
MEMSPAN_RMA_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_sum_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce) { \
    return shmem_##name##_sum_reduce(team, dest, source, nreduce); \
  }
MEMSPAN_ARITHMETIC_REDUCE_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_prod_reduce(shmem_team_t team, type* dest, const type* source, size_t nreduce) { \
    return shmem_##name##_prod_reduce(team, dest, source, nreduce); \
  }
MEMSPAN_ARITHMETIC_REDUCE_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_sum_inscan(shmem_team_t team, type* dest, const type* source, size_t nelems) { \
    return shmem_##name##_sum_inscan(team, dest, source, nelems); \
  }
MEMSPAN_ARITHMETIC_REDUCE_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline int shmem_sum_exscan(shmem_team_t team, type* dest, const type* source, size_t nelems) { \
    return shmem_##name##_sum_exscan(team, dest, source, nelems); \
  }
MEMSPAN_ARITHMETIC_REDUCE_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_fetch(const type* source, int pe) { \
    return shmem_##name##_fetch(source, pe); \
  }
MEMSPAN_EXTENDED_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_set(type* dest, type value, int pe) { \
    shmem_##name##_set(dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_swap(type* dest, type value, int pe) { \
    return shmem_##name##_swap(dest, value, pe); \
  }
MEMSPAN_EXTENDED_AMO_BUT_LONG_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_cswap(type* dest, type cond, type value, int pe) { \
    return shmem_##name##_cswap(dest, cond, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_fadd(type* dest, type value, int pe) { \
    return shmem_##name##_fadd(dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline type shmem_finc(type* dest, int pe) { \
    return shmem_##name##_finc(dest, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_add(type* dest, type value, int pe) { \
    shmem_##name##_add(dest, value, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
#define MEMSPAN_OVERLOAD_(name, type) \
  inline void shmem_inc(type* dest, int pe) { \
    shmem_##name##_inc(dest, pe); \
  }
MEMSPAN_STANDARD_AMO_SET_(MEMSPAN_OVERLOAD_)
#undef MEMSPAN_OVERLOAD_
inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }
inline void shmem_signal_add(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) { shmem_ctx_signal_add(ctx, sig_addr, signal, pe); }
inline void shmem_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) { shmem_ctx_signal_set(ctx, sig_addr, signal, pe); }

#undef MEMSPAN_RMA_SET_
#undef MEMSPAN_EXTENDED_AMO_SET_
#undef MEMSPAN_STANDARD_AMO_SET_
#undef MEMSPAN_WAIT_BUT_LONG_SET_
#undef MEMSPAN_WAIT_SET_
#undef MEMSPAN_BITWISE_REDUCE_SET_
#undef MEMSPAN_ARITHMETIC_REDUCE_SET_
#undef MEMSPAN_EXTENDED_AMO_BUT_LONG_SET_

}
/* clang-format on */

#endif /* MEMSPAN_OPENSHMEM_CXX_H */
