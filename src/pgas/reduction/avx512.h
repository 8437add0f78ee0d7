// SPDX-License-Identifier: Apache-2.0
// The types of narrow_floats.h, 32 elements at a time, for the loops of wide_combine.h. A template,
// so that files compiled for different instruction sets share no function (wide_kernels.h).
#pragma once

// GCC 12 takes what its header leaves without a value on purpose for a mistake (its bug 105593).
#ifdef __clang__
#include <immintrin.h>
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#include <cstddef>
#include <cstdint>

#include "pgas/reduction/narrow_floats.h"
#include "pgas/reduction/wide_kernels.h"

namespace memspan::pgas {

template <Instructions kSet>
struct Avx512 {
  static constexpr std::size_t kLanes = 32;
  struct Floats {
    __m512 first, second;
  };

  static Floats add(Floats a, Floats b) {
    return {_mm512_add_ps(a.first, b.first), _mm512_add_ps(a.second, b.second)};
  }
  static Floats multiply(Floats a, Floats b) {
    return {_mm512_mul_ps(a.first, b.first), _mm512_mul_ps(a.second, b.second)};
  }
  static Floats divide(Floats a, float b) {
    return {_mm512_div_ps(a.first, _mm512_set1_ps(b)), _mm512_div_ps(a.second, _mm512_set1_ps(b))};
  }
  // If they are equal, or one is a NaN: `a`, which is the second for the instruction.
  static Floats min(Floats a, Floats b) {
    return {_mm512_min_ps(b.first, a.first), _mm512_min_ps(b.second, a.second)};
  }
  static Floats max(Floats a, Floats b) {
    return {_mm512_max_ps(b.first, a.first), _mm512_max_ps(b.second, a.second)};
  }

  // Fewer than 64 bytes, with zeros behind them in `to`, which has 64.
  static void copy_to_rest(void* to, const void* from, std::size_t bytes) {
    _mm512_storeu_si512(to, _mm512_maskz_loadu_epi8((__mmask64{1} << bytes) - 1, from));
  }
  static void copy_from_rest(void* to, const void* from, std::size_t bytes) {
    _mm512_mask_storeu_epi8(to, (__mmask64{1} << bytes) - 1, _mm512_loadu_si512(from));
  }

  // From memory twice: to take a vector apart costs a shuffle.
  static Floats load(const Half* from) {
    const auto* const halves = reinterpret_cast<const __m256i*>(from);
    return {_mm512_cvtph_ps(_mm256_loadu_si256(halves)),
            _mm512_cvtph_ps(_mm256_loadu_si256(halves + 1))};
  }
  static void store(Half* to, Floats values) {
    auto* const halves = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(halves, _mm512_cvtps_ph(values.first, _MM_FROUND_TO_NEAREST_INT));
    _mm256_storeu_si256(halves + 1, _mm512_cvtps_ph(values.second, _MM_FROUND_TO_NEAREST_INT));
  }

  // Even elements and odd ones: no shuffle is needed to widen.
  static Floats load(const Bfloat16* from) {
    const __m512i both = _mm512_loadu_si512(from);
    return {_mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(~0xffff)))};
  }
  static void store(Bfloat16* to, Floats values) {
    if constexpr (kSet == Instructions::kAvx512Bf16) {
      // The instruction takes subnormal floats for zero.
      if (!has_subnormal(values)) [[likely]]
        return _mm512_storeu_si512(to, narrowed_by_instruction(values));
    }
    _mm512_storeu_si512(to, narrowed_by_integers(values));
  }

  static Floats load(const Float8E5m2* from) {
    return widen_halves(_mm512_slli_epi16(_mm512_cvtepu8_epi16(load_bytes(from)), 8));
  }
  static void store(Float8E5m2* to, Floats values) {
    constexpr int kInfinity = 0x7c;
    store_bytes(to, values, narrow_byte<5, 2>(values.first, kInfinity),
                narrow_byte<5, 2>(values.second, kInfinity));
  }

  // Through float16, whose exponent's bias is greater by 8 and has one bit more.
  static Floats load(const Float8E4m3fn* from) {
    const __m512i words = _mm512_cvtepi8_epi16(load_bytes(from));
    const __m512i numbers =
        _mm512_and_si512(_mm512_slli_epi16(words, 7), _mm512_set1_epi16(kSignAndMagnitude));
    const __m512i magnitude = _mm512_set1_epi16(kSignAndMagnitude & 0x7fff);
    const __mmask32 is_nan =
        _mm512_cmpeq_epi16_mask(_mm512_and_si512(numbers, magnitude), magnitude);
    const Floats halves = widen_halves(
        _mm512_or_si512(numbers, _mm512_maskz_mov_epi16(is_nan, _mm512_set1_epi16(0x7c00))));
    const __m512 scale = _mm512_set1_ps(256);
    return {_mm512_mul_ps(halves.first, scale), _mm512_mul_ps(halves.second, scale)};
  }
  static void store(Float8E4m3fn* to, Floats values) {
    constexpr int kGreatest = 0x7e;
    store_bytes(to, values, narrow_byte<4, 3>(values.first, kGreatest),
                narrow_byte<4, 3>(values.second, kGreatest));
  }

 private:
  static constexpr short kSignAndMagnitude = static_cast<short>(0xbf80);

  static Floats widen_halves(__m512i halves) {
    return {_mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
            _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1))};
  }
  static __m256i load_bytes(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }

  // By the bits: a program may have set its processor to treat subnormals as zero.
  static bool has_subnormal(Floats values) {
    const __m512i first = _mm512_castps_si512(values.first);
    const __m512i second = _mm512_castps_si512(values.second);
    const __m512i exponent = _mm512_set1_epi32(kFloatInfinity);
    const __mmask16 is_first_small = _mm512_testn_epi32_mask(first, exponent);
    const __mmask16 is_second_small = _mm512_testn_epi32_mask(second, exponent);
    if (_mm512_kortestz(is_first_small, is_second_small) != 0) [[likely]]
      return false;
    const __m512i mantissa = _mm512_set1_epi32(0x7fffff);
    return (_mm512_mask_test_epi32_mask(is_first_small, first, mantissa) |
            _mm512_mask_test_epi32_mask(is_second_small, second, mantissa)) != 0;
  }
  static __m512i narrowed_by_instruction(Floats values) {
    // 0, 16, 1, 17 and so on, of the even elements' and the odd ones' 16.
    const __m512i order = _mm512_add_epi32(
        _mm512_set1_epi32(16 << 16),
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           _mm512_set1_epi32(0x10001)));
    return _mm512_permutexvar_epi16(
        order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(values.second, values.first)));
  }

  static __m512i narrowed_by_integers(Floats values) {
    __m512i even = rounded_to_upper(values.first);
    __m512i odd = rounded_to_upper(values.second);
    if (_mm512_cmp_ps_mask(values.first, values.second, _CMP_UNORD_Q) != 0) [[unlikely]] {
      even = with_quiet_nans(even, values.first);
      odd = with_quiet_nans(odd, values.second);
    }
    constexpr __mmask32 kOdd = 0xaaaaaaaaU;
    return _mm512_mask_mov_epi16(_mm512_srli_epi32(even, 16), kOdd, odd);
  }
  // Bfloat16::narrow(), whose result is in the upper half.
  static __m512i rounded_to_upper(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    const __mmask16 is_odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    return _mm512_mask_add_epi32(sum, is_odd, sum, _mm512_set1_epi32(1));
  }
  static __m512i with_quiet_nans(__m512i rounded, __m512 value) {
    return _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q),
                                _mm512_castps_si512(value), _mm512_set1_epi32(kFloatQuiet));
  }

  // NarrowMagnitude::narrow().
  template <int kExponentBits, int kMantissaBits>
  static __m512i narrow_magnitude(__m512 value) {
    using Magnitude = NarrowMagnitude<kExponentBits, kMantissaBits>;
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(kFloatMagnitude));
    const __mmask16 is_odd =
        _mm512_test_epi32_mask(magnitude, _mm512_set1_epi32(1 << Magnitude::kShift));
    const __m512i sum = _mm512_add_epi32(magnitude, _mm512_set1_epi32(Magnitude::kToRound));
    const __m512i normal = _mm512_srli_epi32(
        _mm512_mask_add_epi32(sum, is_odd, sum, _mm512_set1_epi32(1)), Magnitude::kShift);
    const __m512i rounds = _mm512_set1_epi32(Magnitude::kRounds);
    const __m512 rounded =
        _mm512_add_ps(_mm512_castsi512_ps(magnitude), _mm512_castsi512_ps(rounds));
    const __mmask16 is_subnormal =
        _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(Magnitude::kLeastNormal));
    return _mm512_mask_sub_epi32(normal, is_subnormal, _mm512_castps_si512(rounded), rounds);
  }
  // The magnitude of an 8-bit type, at most `greatest`, or the NaN.
  template <int kExponentBits, int kMantissaBits>
  static __m512i narrow_byte(__m512 value, int greatest) {
    const __m512i bits = _mm512_min_epu32(narrow_magnitude<kExponentBits, kMantissaBits>(value),
                                          _mm512_set1_epi32(greatest));
    return _mm512_mask_mov_epi32(bits, _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q),
                                 _mm512_set1_epi32(0x7f));
  }
  // Stores magnitudes of 7 bits with the values' signs.
  static void store_bytes(void* to, Floats values, __m512i first, __m512i second) {
    const auto with_sign = [](__m512i magnitude, __m512 value) {
      constexpr int kMaskedOr = 0xea;  // (a & b) | c
      const __m512i upper = _mm512_srli_epi32(_mm512_castps_si512(value), 24);
      return _mm512_cvtepi32_epi8(
          _mm512_ternarylogic_epi32(upper, _mm512_set1_epi32(0x80), magnitude, kMaskedOr));
    };
    auto* const bytes = static_cast<__m128i*>(to);
    _mm_storeu_si128(bytes, with_sign(first, values.first));
    _mm_storeu_si128(bytes + 1, with_sign(second, values.second));
  }
};

}  // namespace memspan::pgas
