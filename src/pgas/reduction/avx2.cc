// SPDX-License-Identifier: Apache-2.0
// The types of narrow_floats.h, 16 elements at a time. Compiled for AVX2 and F16C (wide_kernels.h).
#ifdef __x86_64__
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "pgas/reduction/narrow_floats.h"
#include "pgas/reduction/wide_combine.h"

namespace memspan::pgas {

struct Avx2 {
  static constexpr std::size_t kLanes = 16;
  struct Floats {
    __m256 first, second;
  };

  static Floats add(Floats a, Floats b) {
    return {_mm256_add_ps(a.first, b.first), _mm256_add_ps(a.second, b.second)};
  }
  static Floats multiply(Floats a, Floats b) {
    return {_mm256_mul_ps(a.first, b.first), _mm256_mul_ps(a.second, b.second)};
  }
  static Floats divide(Floats a, float b) {
    return {_mm256_div_ps(a.first, _mm256_set1_ps(b)), _mm256_div_ps(a.second, _mm256_set1_ps(b))};
  }
  // If they are equal, or one is a NaN: `a`, which is the second for the instruction.
  static Floats min(Floats a, Floats b) {
    return {_mm256_min_ps(b.first, a.first), _mm256_min_ps(b.second, a.second)};
  }
  static Floats max(Floats a, Floats b) {
    return {_mm256_max_ps(b.first, a.first), _mm256_max_ps(b.second, a.second)};
  }

  static void copy_to_rest(void* to, const void* from, std::size_t bytes) {
    __builtin_memcpy(to, from, bytes);
  }
  static void copy_from_rest(void* to, const void* from, std::size_t bytes) {
    __builtin_memcpy(to, from, bytes);
  }

  // From memory twice: to take a vector apart costs a shuffle.
  static Floats load(const Half* from) {
    const auto* const halves = reinterpret_cast<const __m128i*>(from);
    return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
  }
  static void store(Half* to, Floats values) {
    auto* const halves = reinterpret_cast<__m128i*>(to);
    _mm_storeu_si128(halves, _mm256_cvtps_ph(values.first, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(halves + 1, _mm256_cvtps_ph(values.second, _MM_FROUND_TO_NEAREST_INT));
  }

  // Even elements and odd ones: no shuffle is needed to widen and to narrow.
  static Floats load(const Bfloat16* from) {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(both, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(~0xffff)))};
  }
  static void store(Bfloat16* to, Floats values) {
    __m256i even = rounded_to_upper(values.first);
    __m256i odd = rounded_to_upper(values.second);
    if (_mm256_movemask_ps(_mm256_cmp_ps(values.first, values.second, _CMP_UNORD_Q)) != 0)
        [[unlikely]] {
      even = with_quiet_nans(even, values.first);
      odd = with_quiet_nans(odd, values.second);
    }
    constexpr int kOdd = 0xaa;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, kOdd));
  }

  static Floats load(const Float8E5m2* from) {
    return widen_halves(_mm256_slli_epi16(_mm256_cvtepu8_epi16(load_bytes(from)), 8));
  }
  static void store(Float8E5m2* to, Floats values) {
    constexpr int kInfinity = 0x7c;
    store_bytes(to, values, narrow_byte<5, 2>(values.first, kInfinity),
                narrow_byte<5, 2>(values.second, kInfinity));
  }

  // Through float16, whose exponent's bias is greater by 8 and has one bit more.
  static Floats load(const Float8E4m3fn* from) {
    const __m256i words = _mm256_cvtepi8_epi16(load_bytes(from));
    const __m256i numbers =
        _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(kSignAndMagnitude));
    const __m256i magnitude = _mm256_set1_epi16(kSignAndMagnitude & 0x7fff);
    const __m256i is_nan = _mm256_cmpeq_epi16(_mm256_and_si256(numbers, magnitude), magnitude);
    const Floats halves =
        widen_halves(_mm256_or_si256(numbers, _mm256_and_si256(is_nan, _mm256_set1_epi16(0x7c00))));
    const __m256 scale = _mm256_set1_ps(256);
    return {_mm256_mul_ps(halves.first, scale), _mm256_mul_ps(halves.second, scale)};
  }
  static void store(Float8E4m3fn* to, Floats values) {
    constexpr int kGreatest = 0x7e;
    store_bytes(to, values, narrow_byte<4, 3>(values.first, kGreatest),
                narrow_byte<4, 3>(values.second, kGreatest));
  }

 private:
  static constexpr short kSignAndMagnitude = static_cast<short>(0xbf80);

  static Floats widen_halves(__m256i halves) {
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
            _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
  }
  static __m128i load_bytes(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  }
  static __m256i chosen(__m256i mask, __m256i where_set, __m256i elsewhere) {
    return _mm256_blendv_epi8(elsewhere, where_set, mask);
  }

  // Bfloat16::narrow(), whose result is in the upper half.
  static __m256i rounded_to_upper(__m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  }
  static __m256i with_quiet_nans(__m256i rounded, __m256 value) {
    const __m256i quiet =
        _mm256_or_si256(_mm256_castps_si256(value), _mm256_set1_epi32(kFloatQuiet));
    return chosen(_mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q)), quiet, rounded);
  }

  // NarrowMagnitude::narrow().
  template <int kExponentBits, int kMantissaBits>
  static __m256i narrow_magnitude(__m256 value) {
    using Magnitude = NarrowMagnitude<kExponentBits, kMantissaBits>;
    const __m256i magnitude =
        _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(kFloatMagnitude));
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(magnitude, Magnitude::kShift), _mm256_set1_epi32(1));
    const __m256i normal = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(Magnitude::kToRound)), odd),
        Magnitude::kShift);
    const __m256i rounds = _mm256_set1_epi32(Magnitude::kRounds);
    const __m256i subnormal =
        _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(magnitude),
                                                           _mm256_castsi256_ps(rounds))),
                         rounds);
    return chosen(_mm256_cmpgt_epi32(_mm256_set1_epi32(Magnitude::kLeastNormal), magnitude),
                  subnormal, normal);
  }
  // The magnitude of an 8-bit type, at most `greatest`, or the NaN.
  template <int kExponentBits, int kMantissaBits>
  static __m256i narrow_byte(__m256 value, int greatest) {
    const __m256i bits = _mm256_min_epu32(narrow_magnitude<kExponentBits, kMantissaBits>(value),
                                          _mm256_set1_epi32(greatest));
    return chosen(_mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q)),
                  _mm256_set1_epi32(0x7f), bits);
  }
  // Stores magnitudes of 7 bits with the values' signs.
  static void store_bytes(void* to, Floats values, __m256i first, __m256i second) {
    const auto with_sign = [](__m256i magnitude, __m256 value) {
      const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(value), 24),
                                            _mm256_set1_epi32(0x80));
      return _mm256_or_si256(magnitude, sign);
    };
    // Packing works in each half of the vector by itself: its quarters are put in order after it.
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packus_epi32(with_sign(first, values.first), with_sign(second, values.second)),
        0xd8);
    _mm_storeu_si128(
        static_cast<__m128i*>(to),
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
};

template struct WideKernels<Half, Avx2>;
template struct WideKernels<Bfloat16, Avx2>;
template struct WideKernels<Float8E4m3fn, Avx2>;
template struct WideKernels<Float8E5m2, Avx2>;

}  // namespace memspan::pgas
#endif
