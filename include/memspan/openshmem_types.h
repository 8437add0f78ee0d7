/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of OpenSHMEM as sets, for the headers that say the same of each: MEMSPAN_RMA_TYPES_(X, a, b) is
 * X(float, float, a, b) X(double, double, a, b) and so on, the type's middle name first. Declares nothing.
 *
 * Written by tools/dev/generate_openshmem.py; change that or types.def, not this file.
 */
#ifndef MEMSPAN_OPENSHMEM_TYPES_H
#define MEMSPAN_OPENSHMEM_TYPES_H

/* clang-format off */
#define MEMSPAN_TYPES_0_(X, a, b) \
  X(int, int, a, b) \
  X(longlong, long long, a, b)
#define MEMSPAN_TYPES_1_(X, a, b) \
  X(long, long, a, b)
#define MEMSPAN_TYPES_2_(X, a, b) \
  X(uint, unsigned int, a, b) \
  X(ulong, unsigned long, a, b) \
  X(ulonglong, unsigned long long, a, b)
#define MEMSPAN_TYPES_3_(X, a, b) \
  X(int32, int32_t, a, b) \
  X(int64, int64_t, a, b) \
  X(uint32, uint32_t, a, b) \
  X(uint64, uint64_t, a, b)
#define MEMSPAN_TYPES_4_(X, a, b) \
  X(size, size_t, a, b)
#define MEMSPAN_TYPES_5_(X, a, b) \
  X(ptrdiff, ptrdiff_t, a, b)
#define MEMSPAN_TYPES_6_(X, a, b) \
  X(short, short, a, b)
#define MEMSPAN_TYPES_7_(X, a, b) \
  X(ushort, unsigned short, a, b)
#define MEMSPAN_TYPES_8_(X, a, b) \
  X(float, float, a, b) \
  X(double, double, a, b)
#define MEMSPAN_TYPES_9_(X, a, b) \
  X(uchar, unsigned char, a, b)
#define MEMSPAN_TYPES_10_(X, a, b) \
  X(int8, int8_t, a, b)
#define MEMSPAN_TYPES_11_(X, a, b) \
  X(int16, int16_t, a, b) \
  X(uint8, uint8_t, a, b) \
  X(uint16, uint16_t, a, b)
#define MEMSPAN_TYPES_12_(X, a, b) \
  X(longdouble, long double, a, b)
#define MEMSPAN_TYPES_13_(X, a, b) \
  X(char, char, a, b) \
  X(schar, signed char, a, b)
#define MEMSPAN_TYPES_14_(X, a, b) \
  X(complexd, memspan_complexd, a, b) \
  X(complexf, memspan_complexf, a, b)
#define MEMSPAN_TYPES_15_(X, a, b) \
  X(8, 1, a, b) \
  X(16, 2, a, b) \
  X(128, 16, a, b)
#define MEMSPAN_TYPES_16_(X, a, b) \
  X(32, 4, a, b) \
  X(64, 8, a, b)

#define MEMSPAN_BITWISE_AMO_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_3_(X, a, b)
#define MEMSPAN_STANDARD_AMO_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_3_(X, a, b) MEMSPAN_TYPES_4_(X, a, b) MEMSPAN_TYPES_5_(X, a, b)
#define MEMSPAN_WAIT_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_3_(X, a, b) MEMSPAN_TYPES_4_(X, a, b) MEMSPAN_TYPES_5_(X, a, b) \
  MEMSPAN_TYPES_6_(X, a, b) MEMSPAN_TYPES_7_(X, a, b)
#define MEMSPAN_DEPRECATED_WAIT_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_6_(X, a, b)
#define MEMSPAN_TO_ALL_BITWISE_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_6_(X, a, b)
#define MEMSPAN_EXTENDED_AMO_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_3_(X, a, b) MEMSPAN_TYPES_4_(X, a, b) MEMSPAN_TYPES_5_(X, a, b) \
  MEMSPAN_TYPES_8_(X, a, b)
#define MEMSPAN_BITWISE_REDUCE_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_3_(X, a, b) MEMSPAN_TYPES_4_(X, a, b) MEMSPAN_TYPES_6_(X, a, b) \
  MEMSPAN_TYPES_7_(X, a, b) MEMSPAN_TYPES_9_(X, a, b) MEMSPAN_TYPES_10_(X, a, b) \
  MEMSPAN_TYPES_11_(X, a, b)
#define MEMSPAN_RMA_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_3_(X, a, b) MEMSPAN_TYPES_4_(X, a, b) MEMSPAN_TYPES_5_(X, a, b) \
  MEMSPAN_TYPES_6_(X, a, b) MEMSPAN_TYPES_7_(X, a, b) MEMSPAN_TYPES_8_(X, a, b) \
  MEMSPAN_TYPES_9_(X, a, b) MEMSPAN_TYPES_10_(X, a, b) MEMSPAN_TYPES_11_(X, a, b) \
  MEMSPAN_TYPES_12_(X, a, b) MEMSPAN_TYPES_13_(X, a, b)
#define MEMSPAN_TO_ALL_ORDERED_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_6_(X, a, b) \
  MEMSPAN_TYPES_8_(X, a, b) MEMSPAN_TYPES_12_(X, a, b)
#define MEMSPAN_TO_ALL_ARITHMETIC_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_6_(X, a, b) \
  MEMSPAN_TYPES_8_(X, a, b) MEMSPAN_TYPES_12_(X, a, b) MEMSPAN_TYPES_14_(X, a, b)
#define MEMSPAN_ARITHMETIC_REDUCE_TYPES_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_3_(X, a, b) MEMSPAN_TYPES_4_(X, a, b) MEMSPAN_TYPES_5_(X, a, b) \
  MEMSPAN_TYPES_6_(X, a, b) MEMSPAN_TYPES_7_(X, a, b) MEMSPAN_TYPES_8_(X, a, b) \
  MEMSPAN_TYPES_9_(X, a, b) MEMSPAN_TYPES_10_(X, a, b) MEMSPAN_TYPES_11_(X, a, b) \
  MEMSPAN_TYPES_12_(X, a, b) MEMSPAN_TYPES_13_(X, a, b) MEMSPAN_TYPES_14_(X, a, b)
#define MEMSPAN_SIZES_(X, a, b) \
  MEMSPAN_TYPES_15_(X, a, b) MEMSPAN_TYPES_16_(X, a, b)
#define MEMSPAN_ACTIVE_SET_SIZES_(X, a, b) \
  MEMSPAN_TYPES_16_(X, a, b)
#define MEMSPAN_RMA_DISTINCT_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_6_(X, a, b) MEMSPAN_TYPES_7_(X, a, b) MEMSPAN_TYPES_8_(X, a, b) \
  MEMSPAN_TYPES_9_(X, a, b) MEMSPAN_TYPES_12_(X, a, b) MEMSPAN_TYPES_13_(X, a, b)
#define MEMSPAN_EXTENDED_AMO_DISTINCT_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_8_(X, a, b)
#define MEMSPAN_STANDARD_AMO_DISTINCT_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b)
#define MEMSPAN_BITWISE_AMO_DISTINCT_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b)
#define MEMSPAN_WAIT_DISTINCT_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_6_(X, a, b) MEMSPAN_TYPES_7_(X, a, b)
#define MEMSPAN_WAIT_DISTINCT_BUT_LONG_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) MEMSPAN_TYPES_6_(X, a, b) \
  MEMSPAN_TYPES_7_(X, a, b)
#define MEMSPAN_BITWISE_REDUCE_DISTINCT_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_6_(X, a, b) MEMSPAN_TYPES_7_(X, a, b) MEMSPAN_TYPES_9_(X, a, b) \
  MEMSPAN_TYPES_10_(X, a, b)
#define MEMSPAN_ARITHMETIC_REDUCE_DISTINCT_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_1_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) \
  MEMSPAN_TYPES_6_(X, a, b) MEMSPAN_TYPES_7_(X, a, b) MEMSPAN_TYPES_8_(X, a, b) \
  MEMSPAN_TYPES_9_(X, a, b) MEMSPAN_TYPES_12_(X, a, b) MEMSPAN_TYPES_13_(X, a, b) \
  MEMSPAN_TYPES_14_(X, a, b)
#define MEMSPAN_EXTENDED_AMO_DISTINCT_BUT_LONG_(X, a, b) \
  MEMSPAN_TYPES_0_(X, a, b) MEMSPAN_TYPES_2_(X, a, b) MEMSPAN_TYPES_8_(X, a, b)
/* clang-format on */

#endif /* MEMSPAN_OPENSHMEM_TYPES_H */
