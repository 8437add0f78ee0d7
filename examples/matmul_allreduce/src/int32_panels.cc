// SPDX-License-Identifier: Apache-2.0
#include "int32_panels.h"

#include <algorithm>

#include "simd.h"

namespace matmul {
namespace {

struct Range {
  std::int32_t least = 0, most = 0;
};

[[gnu::always_inline]] inline Range range_loop(const std::int32_t* values, std::size_t count) {
  Range range;
  for (std::size_t i = 0; i < count; ++i) {
    range.least = std::min(range.least, values[i]);
    range.most = std::max(range.most, values[i]);
  }
  return range;
}

[[gnu::always_inline]] inline void part_loop(Int32Part part, const std::int32_t* from, double* to,
                                             std::size_t count) {
  if (part == Int32Part::kWhole)
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
  else if (part == Int32Part::kLow)
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i] & 0xffff;
  else
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i] >> 16;
}

[[gnu::always_inline]] inline void accumulate_loop(Accumulate how, const double* sums, int shift,
                                                   std::uint32_t* to, std::size_t count) {
  std::uint32_t keep = how == Accumulate::kAdd ? 0xffffffff : 0;
  for (std::size_t i = 0; i < count; ++i)
    to[i] =
        (to[i] & keep) + (static_cast<std::uint32_t>(static_cast<std::int64_t>(sums[i])) << shift);
}

MATMUL_AVX512 Range range_avx512(const std::int32_t* values, std::size_t count) {
  return range_loop(values, count);
}
MATMUL_AVX512 void part_avx512(Int32Part part, const std::int32_t* from, double* to,
                               std::size_t count) {
  part_loop(part, from, to, count);
}
MATMUL_AVX512 void accumulate_avx512(Accumulate how, const double* sums, int shift,
                                     std::uint32_t* to, std::size_t count) {
  accumulate_loop(how, sums, shift, to, count);
}

}  // namespace

std::uint64_t largest_magnitude(const std::int32_t* values, std::size_t count) {
  bool fast = best_simd() == Simd::kAvx512;
  Range range = fast ? range_avx512(values, count) : range_loop(values, count);
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(range.most, -static_cast<std::int64_t>(range.least)));
}

void int32_part_to_double(Int32Part part, const std::int32_t* from, double* to, std::size_t count) {
  best_simd() == Simd::kAvx512 ? part_avx512(part, from, to, count)
                               : part_loop(part, from, to, count);
}

void accumulate_modulo(Accumulate how, const double* sums, int shift, std::uint32_t* to,
                       std::size_t count) {
  best_simd() == Simd::kAvx512 ? accumulate_avx512(how, sums, shift, to, count)
                               : accumulate_loop(how, sums, shift, to, count);
}

}  // namespace matmul
