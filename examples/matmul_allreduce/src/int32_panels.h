// SPDX-License-Identifier: Apache-2.0
// int32 numbers as exact doubles, whole or in halves, and sums of their products back to int32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace matmul {

enum class Int32Part {
  kWhole,
  kLow,   // the low 16 bits, 0 ... 65535
  kHigh,  // the high 16 bits with the sign, -32768 ... 32767: whole = high * 2^16 + low
};
enum class Accumulate { kSet, kAdd };

std::uint64_t largest_magnitude(const std::int32_t* values, std::size_t count);
void int32_part_to_double(Int32Part part, const std::int32_t* from, double* to, std::size_t count);
// to[i] (+)= sums[i] * 2^shift modulo 2^32; sums are whole numbers below 2^53 in magnitude.
void accumulate_modulo(Accumulate how, const double* sums, int shift, std::uint32_t* to,
                       std::size_t count);

}  // namespace matmul
