// SPDX-License-Identifier: Apache-2.0
#include "half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace matmul {
namespace {

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

// What an fp16 is by definition.
double fp16_value(std::uint16_t bits) {
  int exponent = (bits >> 10) & 0x1f;
  double mantissa = bits & 0x3ff;
  double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_fp16_finite(std::uint16_t bits) {
  return (bits & 0x7c00) != 0x7c00;
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// Every 16-bit pattern as the upper half, and lower halves around each rounding decision of both
// types: below, at and above ties, for both parities.
std::vector<float> interesting_floats() {
  std::vector<float> floats;
  for (std::uint32_t high = 0; high < 65536; ++high)
    for (std::uint32_t low :
         {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x5000u, 0x7000u, 0x7fffu,
          0x8000u, 0x8001u, 0x9000u, 0xb000u, 0xefffu, 0xffffu})
      floats.push_back(std::bit_cast<float>(high << 16 | low));
  return floats;
}

TEST(HalfTest, EveryFp16HasItsValue) {
  for (std::uint16_t bits : all_halves()) {
    float value = fp16_to_float(bits);
    if (is_fp16_finite(bits))
      ASSERT_EQ(bits_of(value), bits_of(static_cast<float>(fp16_value(bits)))) << bits;
    else if ((bits & 0x3ff) == 0)
      ASSERT_EQ(value, (bits & 0x8000) != 0 ? -INFINITY : INFINITY);
    else
      ASSERT_TRUE(std::isnan(value));
  }
}

TEST(HalfTest, EveryFp16ComesBack) {
  for (std::uint16_t bits : all_halves()) {
    bool is_nan = (bits & 0x7fff) > 0x7c00;
    ASSERT_EQ(float_to_fp16(fp16_to_float(bits)), is_nan ? bits | 0x200 : bits);
  }
}

TEST(HalfTest, EveryBf16ComesBack) {
  for (std::uint16_t bits : all_halves()) {
    bool is_nan = (bits & 0x7fff) > 0x7f80;
    ASSERT_EQ(float_to_bf16(bf16_to_float(bits)), is_nan ? bits | 0x40 : bits);
  }
}

TEST(HalfTest, RoundsToTheNearestFp16AndTiesToEven) {
  for (std::uint16_t bits : all_halves()) {
    auto above = static_cast<std::uint16_t>(bits + 1);
    if (!is_fp16_finite(bits) || !is_fp16_finite(above)) continue;
    auto middle = static_cast<float>((fp16_value(bits) + fp16_value(above)) / 2);
    ASSERT_EQ(float_to_fp16(middle), (bits & 1) == 0 ? bits : above) << bits;
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, fp16_to_float(bits))), bits) << bits;
    ASSERT_EQ(float_to_fp16(std::nextafter(middle, fp16_to_float(above))), above) << bits;
  }
}

TEST(HalfTest, RoundsToTheNearestBf16AndTiesToEven) {
  for (std::uint32_t bits : all_halves()) {
    if ((bits & 0x7f80) == 0x7f80) continue;
    std::uint32_t even = bits + (bits & 1);
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(bits << 16 | 0x8000)), even);
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(bits << 16 | 0x7fff)), bits);
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(bits << 16 | 0x8001)), bits + 1);
  }
}

TEST(HalfTest, OverflowIsInfinity) {
  EXPECT_EQ(float_to_fp16(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_fp16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_fp16(-1e30f), 0xfc00);
}

// Each kind of processor must give the same bits; kinds that this one is not are skipped by
// running what it has.
TEST(HalfTest, TwinsAgreeOnEveryBit) {
  std::vector<std::uint16_t> halves = all_halves();
  std::vector<float> floats = interesting_floats();
  std::vector<float> wide(halves.size()), expected_wide(halves.size());
  std::vector<std::uint16_t> narrow(floats.size()), expected(floats.size());
  auto same_bits = [&] {
    for (std::size_t i = 0; i < wide.size(); ++i)
      if (bits_of(wide[i]) != bits_of(expected_wide[i])) return false;
    return true;
  };
  for (Simd simd : {Simd::kF16c, Simd::kAvx512}) {
    if (static_cast<int>(simd) > static_cast<int>(best_simd())) continue;
    fp16_to_float(halves.data(), expected_wide.data(), halves.size(), Simd::kPortable);
    fp16_to_float(halves.data(), wide.data(), halves.size(), simd);
    EXPECT_TRUE(same_bits());
    bf16_to_float(halves.data(), expected_wide.data(), halves.size(), Simd::kPortable);
    bf16_to_float(halves.data(), wide.data(), halves.size(), simd);
    EXPECT_TRUE(same_bits());
    float_to_fp16(floats.data(), expected.data(), floats.size(), Simd::kPortable);
    float_to_fp16(floats.data(), narrow.data(), floats.size(), simd);
    EXPECT_EQ(narrow, expected);
    float_to_bf16(floats.data(), expected.data(), floats.size(), Simd::kPortable);
    float_to_bf16(floats.data(), narrow.data(), floats.size(), simd);
    EXPECT_EQ(narrow, expected);
  }
}

TEST(HalfTest, EveryFp16IsTheSumOfTwoBf16) {
  std::vector<std::uint16_t> all = all_halves(), high(all.size()), low(all.size());
  for (Simd simd : {Simd::kPortable, Simd::kF16c, Simd::kAvx512}) {
    if (static_cast<int>(simd) > static_cast<int>(best_simd())) continue;
    fp16_to_bf16_pair(all.data(), high.data(), low.data(), all.size(), simd);
    for (std::size_t i = 0; i < all.size(); ++i) {
      double first = bf16_to_float(high[i]), second = bf16_to_float(low[i]);
      float value = fp16_to_float(all[i]);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(first)) << i;
      } else {
        ASSERT_EQ(first + second, value) << i;
        ASSERT_EQ(std::signbit(first), std::signbit(value)) << i;
      }
      if (is_fp16_finite(all[i]))
        ASSERT_LE(std::abs(second), std::abs(first) * 0x1p-8) << i;
      else
        ASSERT_EQ(low[i], 0) << i;
    }
  }
}

// The bf16 unit takes subnormal bf16 numbers for zero.
TEST(HalfTest, NoPartOfAnFp16IsASubnormalBf16) {
  std::vector<std::uint16_t> all = all_halves(), high(all.size()), low(all.size());
  fp16_to_bf16_pair(all.data(), high.data(), low.data(), all.size());
  for (const auto* parts : {&high, &low})
    for (std::uint16_t bits : *parts)
      ASSERT_TRUE((bits & 0x7f80) != 0 || (bits & 0x7fff) == 0) << bits;
}

TEST(HalfTest, OddLengthsStayInBounds) {
  for (std::size_t count = 0; count < 40; ++count) {
    std::vector<std::uint16_t> halves(count + 1, 0x3c00);
    std::vector<float> wide(count + 1, -7.0f);
    fp16_to_float(halves.data(), wide.data(), count);
    EXPECT_EQ(wide[count], -7.0f);
    EXPECT_EQ(std::count(wide.begin(), wide.end(), 1.0f), static_cast<std::ptrdiff_t>(count));
    std::vector<std::uint16_t> high(count + 1, 7), low(count + 1, 7);
    fp16_to_bf16_pair(halves.data(), high.data(), low.data(), count);
    EXPECT_EQ(high[count], 7);
    EXPECT_EQ(low[count], 7);
    EXPECT_EQ(std::count(high.begin(), high.end(), 0x3f80), static_cast<std::ptrdiff_t>(count));
  }
}

}  // namespace
}  // namespace matmul
