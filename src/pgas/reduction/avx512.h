// SPDX-License-Identifier: Apache-2.0
// Vectors of 512 bits for wide_combine.h. A template, so that files compiled for different
// instruction sets share no function (wide_kernels.h).
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

#include "pgas/reduction/wide_combine.h"

namespace memspan::inline pgas {

template <Instructions kSet>
struct Avx512 {
  static constexpr std::size_t kLanes = 32;
  using Float = __m512;
  using Bits = __m512i;

  static Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Bits set32(int value) { return _mm512_set1_epi32(value); }
  static Bits set16(short value) { return _mm512_set1_epi16(value); }
  static Bits add32(Bits a, Bits b) { return _mm512_add_epi32(a, b); }
  static Bits min32(Bits a, Bits b) { return _mm512_min_epu32(a, b); }
  static Bits left32(Bits a, unsigned bits) { return _mm512_slli_epi32(a, bits); }
  static Bits left16(Bits a, unsigned bits) { return _mm512_slli_epi16(a, bits); }
  static Bits right32(Bits a, unsigned bits) { return _mm512_srli_epi32(a, bits); }
  static Bits add_bit(Bits sum, Bits bits, int bit) {
    return _mm512_mask_add_epi32(sum, _mm512_test_epi32_mask(bits, set32(1 << bit)), sum, set32(1));
  }
  static Bits subtract_if_less(Bits otherwise, Bits value, int limit, Bits a, Bits b) {
    return _mm512_mask_sub_epi32(otherwise, _mm512_cmplt_epu32_mask(value, set32(limit)), a, b);
  }
  static Bits where_equal16(Bits a, Bits b, short value) {
    return _mm512_maskz_mov_epi16(_mm512_cmpeq_epi16_mask(a, b), set16(value));
  }
  static bool has_nan(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) != 0; }
  static Bits replace_nans(Bits bits, Float value, Bits by) {
    return _mm512_mask_mov_epi32(bits, _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q), by);
  }

  static Bits load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(void* to, Bits bits) { _mm512_storeu_si512(to, bits); }
  static Bits load_bytes(const void* from) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
  }
  static Float load_halves(const void* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
  }
  static void store_halves(void* to, Float value) {
    _mm256_storeu_si256(static_cast<__m256i*>(to),
                        _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  static Float widen_lower(Bits halves) { return _mm512_cvtph_ps(_mm512_castsi512_si256(halves)); }
  static Float widen_upper(Bits halves) {
    return _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
  }
  static Bits join_upper(Bits even, Bits odd) {
    constexpr __mmask32 kOdd = 0xaaaaaaaaU;
    return _mm512_mask_mov_epi16(right32(even, 16), kOdd, odd);
  }
  static bool narrow_by_instruction(void* to, Float even, Float odd) {
    if constexpr (kSet == Instructions::kAvx512Bf16) {
      // The instruction takes subnormal floats for zero.
      if (!has_subnormal(even, odd)) [[likely]] {
        store(to, narrowed_by_instruction(even, odd));
        return true;
      }
    }
    return false;
  }

  static void store_bytes(void* to, Float first_value, Bits first, Float second_value,
                          Bits second) {
    const auto with_sign = [](Bits magnitude, Float value) {
      constexpr int kMaskedOr = 0xea;  // (a & b) | c
      const Bits upper = right32(_mm512_castps_si512(value), 24);
      return _mm512_cvtepi32_epi8(
          _mm512_ternarylogic_epi32(upper, set32(0x80), magnitude, kMaskedOr));
    };
    auto* const bytes = static_cast<__m128i*>(to);
    _mm_storeu_si128(bytes, with_sign(first, first_value));
    _mm_storeu_si128(bytes + 1, with_sign(second, second_value));
  }
  // Fewer than 64 bytes, with zeros behind them in `to`, which has 64.
  static void copy_to_rest(void* to, const void* from, std::size_t bytes) {
    store(to, _mm512_maskz_loadu_epi8((__mmask64{1} << bytes) - 1, from));
  }
  static void copy_from_rest(void* to, const void* from, std::size_t bytes) {
    _mm512_mask_storeu_epi8(to, (__mmask64{1} << bytes) - 1, load(from));
  }

 private:
  // By the bits: a program may have set its processor to treat subnormals as zero.
  static bool has_subnormal(Float even, Float odd) {
    const Bits first = _mm512_castps_si512(even);
    const Bits second = _mm512_castps_si512(odd);
    const Bits exponent = set32(kFloatInfinity);
    const __mmask16 is_first_small = _mm512_testn_epi32_mask(first, exponent);
    const __mmask16 is_second_small = _mm512_testn_epi32_mask(second, exponent);
    if (_mm512_kortestz(is_first_small, is_second_small) != 0) [[likely]]
      return false;
    const Bits mantissa = set32(0x7fffff);
    return (_mm512_mask_test_epi32_mask(is_first_small, first, mantissa) |
            _mm512_mask_test_epi32_mask(is_second_small, second, mantissa)) != 0;
  }
  static Bits narrowed_by_instruction(Float even, Float odd) {
    // 0, 16, 1, 17 and so on, of the even elements' and the odd ones' 16.
    const Bits order = _mm512_add_epi32(
        set32(16 << 16),
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           set32(0x10001)));
    return _mm512_permutexvar_epi16(order, reinterpret_cast<Bits>(_mm512_cvtne2ps_pbh(odd, even)));
  }
};

}  // namespace memspan::inline pgas
