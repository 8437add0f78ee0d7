// SPDX-License-Identifier: Apache-2.0
// The floating-point types of 16 and 8 bits, which are computed in float, and their conversions:
// widen() is exact, narrow() rounds to the nearest, ties to even. They give the same bits as the
// processor's conversions of float16 and PyTorch's of the others:
//
//   NaN      float16 and bfloat16 keep its sign and upper bits and make it quiet, both ways;
//            8-bit types have one of either sign, all bits set.
//   too big  infinity, but 448 in float8_e4m3fn, its greatest number: infinity also becomes 448
//            (PyTorch's rule since 2.13; a NaN before).
//
// All are without branches, so that compilers make vector code of them. They read and write no
// subnormal float on the way, which a program may have set its processor to treat as zero.
#pragma once

#include <bit>
#include <cstdint>

namespace memspan::inline pgas {

inline constexpr std::uint32_t kFloatMagnitude = 0x7fffffffU;
inline constexpr std::uint32_t kFloatInfinity = 0x7f800000U;
inline constexpr std::uint32_t kFloatQuiet = 0x400000U;

// How a float's magnitude becomes one with fewer bits, and back.
template <int kExponentBits, int kMantissaBits>
struct NarrowMagnitude {
  static constexpr int kShift = 23 - kMantissaBits;
  static constexpr std::uint32_t kBias = (1U << (kExponentBits - 1)) - 1;
  static constexpr std::uint32_t kLeastNormal = (127U - kBias + 1U) << 23;  // as a float
  // Moves a normal float's exponent and rounds all but ties of odd numbers, when it is added.
  static constexpr std::uint32_t kToRound = (1U << (kShift - 1)) - 1U - ((127U - kBias) << 23);
  // A float whose last bit is worth as much as the last bit of a subnormal: adding it rounds there.
  static constexpr std::uint32_t kRounds = (127U - kBias + 1U + kShift) << 23;

  // The float's bits.
  static std::uint32_t widen(std::uint32_t magnitude) {
    const std::uint32_t normal = (magnitude << kShift) + ((127U - kBias) << 23);
    // One more exponent than subnormals have, whose leading bit is then taken away again.
    const float subnormal = std::bit_cast<float>((magnitude << kShift) + kLeastNormal) -
                            std::bit_cast<float>(kLeastNormal);
    return magnitude < (1U << kMantissaBits) ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  }
  // A magnitude that is too big gives bits above the greatest number's.
  static std::uint32_t narrow(std::uint32_t magnitude) {
    const std::uint32_t odd = (magnitude >> kShift) & 1U;
    const std::uint32_t normal = (magnitude + kToRound + odd) >> kShift;
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) +
                                                                 std::bit_cast<float>(kRounds)) -
                                    kRounds;
    return magnitude < kLeastNormal ? subnormal : normal;
  }
  // The bits of an 8-bit type with that greatest magnitude.
  static std::uint8_t narrow_byte(float value, std::uint32_t greatest) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = all & kFloatMagnitude;
    std::uint32_t bits = narrow(magnitude);
    bits = bits > greatest ? greatest : bits;
    bits = magnitude > kFloatInfinity ? 0x7fU : bits;
    return static_cast<std::uint8_t>(bits | ((all >> 24) & 0x80U));
  }
};

// IEEE 754 binary16.
struct Half {
  using Wide = float;
  std::uint16_t bits;

  static float widen(Half half) {
    const std::uint32_t magnitude = half.bits & 0x7fffU;
    const std::uint32_t sign = (half.bits & 0x8000U) << 16;
    const std::uint32_t special = magnitude >= 0x7c00U ? kFloatInfinity : 0U;
    const std::uint32_t quiet = magnitude > 0x7c00U ? kFloatQuiet : 0U;
    const std::uint32_t wide = Magnitude::widen(magnitude);
    return std::bit_cast<float>(wide | special | quiet | sign);
  }
  static Half narrow(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = all & kFloatMagnitude;
    const std::uint32_t payload = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
    const std::uint32_t huge = magnitude > kFloatInfinity ? payload : 0x7c00U;
    std::uint32_t bits = Magnitude::narrow(magnitude);
    bits = magnitude >= (143U << 23) ? huge : bits;
    return {static_cast<std::uint16_t>(bits | ((all >> 16) & 0x8000U))};
  }

 private:
  using Magnitude = NarrowMagnitude<5, 10>;
};

// The upper half of a float.
struct Bfloat16 {
  using Wide = float;
  std::uint16_t bits;

  static float widen(Bfloat16 half) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(half.bits) << 16);
  }
  static Bfloat16 narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const bool is_nan = (bits & kFloatMagnitude) > kFloatInfinity;
    return {static_cast<std::uint16_t>((is_nan ? bits | kFloatQuiet : rounded) >> 16)};
  }
};

// Sign, 4 bits of exponent, 3 of mantissa.
struct Float8E4m3fn {
  using Wide = float;
  std::uint8_t bits;

  static float widen(Float8E4m3fn small) {
    const std::uint32_t magnitude = small.bits & 0x7fU;
    const std::uint32_t sign = (small.bits & 0x80U) << 24;
    const std::uint32_t special = magnitude == 0x7fU ? kFloatInfinity : 0U;
    const std::uint32_t wide = Magnitude::widen(magnitude);
    return std::bit_cast<float>(wide | special | sign);
  }
  static Float8E4m3fn narrow(float value) { return {Magnitude::narrow_byte(value, 0x7eU)}; }

 private:
  using Magnitude = NarrowMagnitude<4, 3>;
};

// The upper half of a float16.
struct Float8E5m2 {
  using Wide = float;
  std::uint8_t bits;

  static float widen(Float8E5m2 small) {
    return Half::widen({static_cast<std::uint16_t>(small.bits << 8)});
  }
  static Float8E5m2 narrow(float value) {
    return {NarrowMagnitude<5, 2>::narrow_byte(value, 0x7cU)};
  }
};

}  // namespace memspan::inline pgas
