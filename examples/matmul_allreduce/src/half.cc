// SPDX-License-Identifier: Apache-2.0
#include "half.h"

#include <algorithm>
#include <array>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace matmul {
namespace {

[[gnu::always_inline]] inline std::uint16_t round_to_bf16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  std::uint32_t quiet = (bits >> 16) | 0x40;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

}  // namespace

float fp16_to_float(std::uint16_t bits) {
  std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  std::uint32_t exponent = (bits >> 10) & 0x1f;
  std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) {
    std::uint32_t quiet = mantissa != 0 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | quiet | (mantissa << 13));
  }
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Subnormal or zero: mantissa * 2^-24 is exact in float.
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::uint16_t float_to_fp16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = (bits >> 16) & 0x8000;
  std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<std::uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >= 0x477ff000)  // 65520 and more round to infinity
    return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // Below 2^-14: adding 0.5 leaves the rounded subnormal in the low bits of the sum.
    float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3f000000));
  }
  std::uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bf16(float value) {
  return round_to_bf16(value);
}

namespace {

// Eight at a time: conversions wait for memory, wider registers gain nothing. They return how
// many elements they did.
#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) std::size_t fp16_to_float_f16c(const std::uint16_t* from,
                                                                   float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  return i;
}

__attribute__((target("avx,f16c"))) std::size_t float_to_fp16_f16c(const float* from,
                                                                   std::uint16_t* to,
                                                                   std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}
#else
std::size_t fp16_to_float_f16c(const std::uint16_t*, float*, std::size_t) {
  return 0;
}
std::size_t float_to_fp16_f16c(const float*, std::uint16_t*, std::size_t) {
  return 0;
}
#endif

// bf16 is shifts and additions, which compilers vectorise.
[[gnu::always_inline]] inline void widen_loop(const std::uint16_t* from, float* to,
                                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
}

[[gnu::always_inline]] inline void round_loop(const float* from, std::uint16_t* to,
                                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = round_to_bf16(from[i]);
}

[[gnu::always_inline]] inline void split_loop(const float* from, std::uint16_t* high,
                                              std::uint16_t* low, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t nearest = round_to_bf16(from[i]);
    float rest = from[i] - std::bit_cast<float>(static_cast<std::uint32_t>(nearest) << 16);
    bool is_finite = (std::bit_cast<std::uint32_t>(from[i]) & 0x7f800000) != 0x7f800000;
    std::uint32_t bits = is_finite ? std::bit_cast<std::uint32_t>(rest) : 0;
    high[i] = nearest;
    low[i] = static_cast<std::uint16_t>(bits >> 16);
  }
}

MATMUL_AVX512 void split_avx512(const float* from, std::uint16_t* high, std::uint16_t* low,
                                std::size_t count) {
  split_loop(from, high, low, count);
}

MATMUL_AVX512 void bf16_to_float_avx512(const std::uint16_t* from, float* to, std::size_t count) {
  widen_loop(from, to, count);
}
MATMUL_AVX512 void float_to_bf16_avx512(const float* from, std::uint16_t* to, std::size_t count) {
  round_loop(from, to, count);
}

}  // namespace

void fp16_to_float(const std::uint16_t* from, float* to, std::size_t count, Simd simd) {
  std::size_t i = simd == Simd::kPortable ? 0 : fp16_to_float_f16c(from, to, count);
  for (; i < count; ++i) to[i] = fp16_to_float(from[i]);
}

void float_to_fp16(const float* from, std::uint16_t* to, std::size_t count, Simd simd) {
  std::size_t i = simd == Simd::kPortable ? 0 : float_to_fp16_f16c(from, to, count);
  for (; i < count; ++i) to[i] = float_to_fp16(from[i]);
}

void bf16_to_float(const std::uint16_t* from, float* to, std::size_t count, Simd simd) {
  simd == Simd::kAvx512 ? bf16_to_float_avx512(from, to, count) : widen_loop(from, to, count);
}

void float_to_bf16(const float* from, std::uint16_t* to, std::size_t count, Simd simd) {
  simd == Simd::kAvx512 ? float_to_bf16_avx512(from, to, count) : round_loop(from, to, count);
}

void fp16_to_bf16_pair(const std::uint16_t* from, std::uint16_t* high, std::uint16_t* low,
                       std::size_t count, Simd simd) {
  constexpr std::size_t kFloats = 1024;  // they stay in the first-level cache
  std::array<float, kFloats> floats;
  for (std::size_t done = 0; done < count; done += kFloats) {
    std::size_t now = std::min(kFloats, count - done);
    fp16_to_float(from + done, floats.data(), now, simd);
    simd == Simd::kAvx512 ? split_avx512(floats.data(), high + done, low + done, now)
                          : split_loop(floats.data(), high + done, low + done, now);
  }
}

}  // namespace matmul
