// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2 and F16C (wide_kernels.h).
#ifdef __x86_64__
#include <immintrin.h>

#include "pgas/reduction/wide_combine.h"

namespace memspan::inline pgas {

struct Avx2 {
  static constexpr std::size_t kLanes = 16;
  using Float = __m256;
  using Bits = __m256i;

  static Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  static Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static Bits set32(int value) { return _mm256_set1_epi32(value); }
  static Bits set16(short value) { return _mm256_set1_epi16(value); }
  static Bits add32(Bits a, Bits b) { return _mm256_add_epi32(a, b); }
  static Bits min32(Bits a, Bits b) { return _mm256_min_epu32(a, b); }
  static Bits left32(Bits a, int bits) { return _mm256_slli_epi32(a, bits); }
  static Bits left16(Bits a, int bits) { return _mm256_slli_epi16(a, bits); }
  static Bits right32(Bits a, int bits) { return _mm256_srli_epi32(a, bits); }
  static Bits add_bit(Bits sum, Bits bits, int bit) {
    return add32(sum, right32(bits, bit) & set32(1));
  }
  static Bits subtract_if_less(Bits otherwise, Bits value, int limit, Bits a, Bits b) {
    return _mm256_blendv_epi8(otherwise, _mm256_sub_epi32(a, b),
                              _mm256_cmpgt_epi32(set32(limit), value));
  }
  static Bits where_equal16(Bits a, Bits b, short value) {
    return _mm256_cmpeq_epi16(a, b) & set16(value);
  }
  static bool has_nan(Float a, Float b) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) != 0;
  }
  static Bits replace_nans(Bits bits, Float value, Bits by) {
    return _mm256_blendv_epi8(bits, by,
                              _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q)));
  }

  static Bits load(const void* from) { return _mm256_loadu_si256(static_cast<const Bits*>(from)); }
  static void store(void* to, Bits bits) { _mm256_storeu_si256(static_cast<Bits*>(to), bits); }
  static Bits load_bytes(const void* from) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static Float load_halves(const void* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static void store_halves(void* to, Float value) {
    _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  static Float widen_lower(Bits halves) { return _mm256_cvtph_ps(_mm256_castsi256_si128(halves)); }
  static Float widen_upper(Bits halves) {
    return _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
  }
  static Bits join_upper(Bits even, Bits odd) {
    constexpr int kOdd = 0xaa;
    return _mm256_blend_epi16(right32(even, 16), odd, kOdd);
  }
  static bool narrow_by_instruction(void*, Float, Float) { return false; }

  static void store_bytes(void* to, Float first_value, Bits first, Float second_value,
                          Bits second) {
    const auto with_sign = [](Bits magnitude, Float value) {
      return magnitude | (right32(_mm256_castps_si256(value), 24) & set32(0x80));
    };
    // Packing works in each half of the vector by itself: its quarters are put in order after it.
    const Bits words = _mm256_permute4x64_epi64(
        _mm256_packus_epi32(with_sign(first, first_value), with_sign(second, second_value)), 0xd8);
    _mm_storeu_si128(
        static_cast<__m128i*>(to),
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  static void copy_to_rest(void* to, const void* from, std::size_t bytes) {
    __builtin_memcpy(to, from, bytes);
  }
  static void copy_from_rest(void* to, const void* from, std::size_t bytes) {
    __builtin_memcpy(to, from, bytes);
  }
};

template struct WideKernels<Half, Avx2>;
template struct WideKernels<Bfloat16, Avx2>;
template struct WideKernels<Float8E4m3fn, Avx2>;
template struct WideKernels<Float8E5m2, Avx2>;

}  // namespace memspan::inline pgas
#endif
