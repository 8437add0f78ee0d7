// SPDX-License-Identifier: Apache-2.0
// The reduction kernels of kernels.cc: how elements of a type are loaded, combined by an operator
// of operators.h, and stored. Floating-point types have code for wider vectors, too.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pgas/reduction/operators.h"

namespace memspan::pgas {

// Without branches, so that compilers make vector code of it.
struct Half {
  using Wide = float;
  std::uint16_t bits;

  static float widen(Half half) {
    const std::uint32_t magnitude = half.bits & 0x7fffU;
    const std::uint32_t sign = (half.bits & 0x8000U) << 16;
    // The exponent's bias is put right by a product, which normalises what was not, too.
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t is_special = magnitude >= 0x7c00U ? 0x7f800000U : 0U;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | is_special | sign);
  }
  static Half narrow(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = all & 0x7fffffffU;
    const std::uint32_t sign = (all >> 16) & 0x8000U;
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    const std::uint32_t normal = (magnitude - (112U << 23) + 0xfffU + odd) >> 13;
    // Adding a half makes the addition round at the last bit that a subnormal has.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
        std::bit_cast<std::uint32_t>(0.5F);
    const std::uint32_t huge = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
    std::uint32_t bits = magnitude < 0x38800000U ? subnormal : normal;
    bits = magnitude >= 0x47800000U ? huge : bits;
    return {static_cast<std::uint16_t>(bits | sign)};
  }
};

struct Bfloat16 {
  using Wide = float;
  std::uint16_t bits;

  static float widen(Bfloat16 half) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(half.bits) << 16);
  }
  static Bfloat16 narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const std::uint32_t quiet = bits | 0x400000U;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return {static_cast<std::uint16_t>((is_nan ? quiet : rounded) >> 16)};
  }
};

// A type that is computed in itself.
template <typename T>
struct Plain {
  using Wide = T;
  T value;
  static T widen(Plain plain) { return plain.value; }
  static Plain narrow(T value) { return {value}; }
};

template <typename T>
struct Keep {
  static T finish(T sum, int) { return sum; }
};
template <typename T>
struct Divide {
  static T finish(T sum, int members) {
    if constexpr (std::is_arithmetic_v<T>)
      return sum / static_cast<T>(members);
    else
      return sum / static_cast<typename T::value_type>(members);
  }
};

// An element depends on the sources' elements at its own index, also where a source is the result.
#ifdef __clang__
#define MEMSPAN_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MEMSPAN_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

constexpr std::size_t kBlockBytes = 4096;  // three of them stay in the first-level cache

// In blocks. Each pass over a block reads one more source, and the last one writes the result.
template <typename Stored, typename Apply, typename Finish>
[[gnu::always_inline]] inline void combine_all(void* result, const void* const sources[],
                                               int members, std::size_t count) {
  using Wide = typename Stored::Wide;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Wide);
  Wide sums[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t now = std::min(kBlock, count - begin);
    const auto source = [&](int member) {
      return static_cast<const Stored*>(sources[member]) + begin;
    };
    const Stored* const first = source(0);
    const Stored* const last = source(members - 1);
    auto* const to = static_cast<Stored*>(result) + begin;
    const auto store = [&](std::size_t i, Wide sum) {
      to[i] = Stored::narrow(Finish::finish(sum, members));
    };
    if (members == 1) {
      MEMSPAN_VECTOR_LOOP
      for (std::size_t i = 0; i < now; ++i) store(i, Stored::widen(first[i]));
      continue;
    }
    if (members == 2) {
      MEMSPAN_VECTOR_LOOP
      for (std::size_t i = 0; i < now; ++i)
        store(i, Apply::apply(Stored::widen(first[i]), Stored::widen(last[i])));
      continue;
    }
    const Stored* const second = source(1);
    for (std::size_t i = 0; i < now; ++i)
      sums[i] = Apply::apply(Stored::widen(first[i]), Stored::widen(second[i]));
    for (int member = 2; member < members - 1; ++member) {
      const Stored* const next = source(member);
      for (std::size_t i = 0; i < now; ++i) sums[i] = Apply::apply(sums[i], Stored::widen(next[i]));
    }
    MEMSPAN_VECTOR_LOOP
    for (std::size_t i = 0; i < now; ++i) store(i, Apply::apply(sums[i], Stored::widen(last[i])));
  }
}

// into[i] = into[i] op from[i].
template <typename T, typename Apply>
void accumulate(void* into, const void* from, std::size_t count) {
  auto* const sums = static_cast<T*>(into);
  const auto* const terms = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) sums[i] = Apply::apply(sums[i], terms[i]);
}

#ifdef __x86_64__
#define MEMSPAN_TARGET(...) __attribute__((target(__VA_ARGS__)))

// Converts eight at a time: compilers make no such instructions of Half's functions.
MEMSPAN_TARGET("avx2,f16c")
inline void widen_block(const Half* from, float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  for (; i < count; ++i) to[i] = Half::widen(from[i]);
}
MEMSPAN_TARGET("avx2,f16c")
inline void narrow_block(const float* from, Half* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; ++i) to[i] = Half::narrow(from[i]);
}
template <typename Apply, typename Finish>
MEMSPAN_TARGET("avx2,f16c")
void combine_halves(void* result, const void* const sources[], int members, std::size_t count) {
  constexpr std::size_t kBlock = kBlockBytes / sizeof(float);
  float sums[kBlock];
  float terms[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t now = std::min(kBlock, count - begin);
    widen_block(static_cast<const Half*>(sources[0]) + begin, sums, now);
    for (int member = 1; member < members; ++member) {
      widen_block(static_cast<const Half*>(sources[member]) + begin, terms, now);
      for (std::size_t i = 0; i < now; ++i) sums[i] = Apply::apply(sums[i], terms[i]);
    }
    for (std::size_t i = 0; i < now; ++i) sums[i] = Finish::finish(sums[i], members);
    narrow_block(sums, static_cast<Half*>(result) + begin, now);
  }
}
#else
#define MEMSPAN_TARGET(...)
#endif

// combine_all() for each instruction set.
template <typename Stored, typename Apply, typename Finish>
struct Kernel {
  static void baseline(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
  MEMSPAN_TARGET("avx2")
  static void avx2(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
  MEMSPAN_TARGET("avx512f,avx512bw,avx512vl,avx512dq")
  static void avx512(void* result, const void* const sources[], int members, std::size_t count) {
    combine_all<Stored, Apply, Finish>(result, sources, members, count);
  }
};

}  // namespace memspan::pgas
