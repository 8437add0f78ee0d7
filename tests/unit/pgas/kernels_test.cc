// SPDX-License-Identifier: Apache-2.0
#include "pgas/reduction/kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "pgas/reduction/narrow_floats.h"

namespace memspan {
namespace {

using namespace pgas;

constexpr int kInt32 = static_cast<int>(ElementType::kInt32);
constexpr int kFloat32 = static_cast<int>(ElementType::kFloat32);
constexpr int kSum = static_cast<int>(Operator::kSum);

float float_of_float8_e4m3fn(std::uint8_t bits) {
  return Float8E4m3fn::widen({bits});
}
std::uint8_t float8_e4m3fn_of_float(float value) {
  return Float8E4m3fn::narrow(value).bits;
}
float float_of_float8_e5m2(std::uint8_t bits) {
  return Float8E5m2::widen({bits});
}
std::uint8_t float8_e5m2_of_float(float value) {
  return Float8E5m2::narrow(value).bits;
}
float float_of_half(std::uint16_t half) {
  return Half::widen({half});
}
std::uint16_t half_of_float(float value) {
  return Half::narrow(value).bits;
}
float float_of_bfloat16(std::uint16_t half) {
  return Bfloat16::widen({half});
}
std::uint16_t bfloat16_of_float(float value) {
  return Bfloat16::narrow(value).bits;
}

TEST(ElementsTest, RefusesWhatTheTypeDoesNotHave) {
  EXPECT_EQ(reduction_kernel(16, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(reduction_kernel(-1, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(reduction_kernel(0, 8).code(), Code::kInvalidArgument);
  EXPECT_EQ(reduction_kernel(kFloat32, static_cast<int>(Operator::kAnd)).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(reduction_kernel(kInt32, static_cast<int>(Operator::kAverage)).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(reduction_kernel(12, static_cast<int>(Operator::kMax)).code(), Code::kInvalidArgument);
}

// All 65536 halves there and back; and floats between two halves, which go to the nearest.
TEST(ElementsTest, HalvesRoundToTheNearest) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = float_of_half(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(float_of_half(half_of_float(wide))));
      continue;
    }
    ASSERT_EQ(half_of_float(wide), half) << bits;
    const float brain = float_of_bfloat16(half);
    if (!std::isnan(brain)) {
      ASSERT_EQ(bfloat16_of_float(brain), half) << bits;
    }
    if ((bits & 0x7fff) >= 0x7bff) continue;
    const float next = float_of_half(static_cast<std::uint16_t>(bits + 1));
    const float middle = (wide + next) / 2;
    const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(half_of_float(middle), even) << bits;
    ASSERT_EQ(half_of_float(std::nextafter(middle, wide)), half) << bits;
    ASSERT_EQ(half_of_float(std::nextafter(middle, next)), bits + 1) << bits;
  }
  EXPECT_EQ(half_of_float(65519.0F), 0x7bff);
  EXPECT_EQ(half_of_float(65520.0F), 0x7c00);
  EXPECT_EQ(half_of_float(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(float_of_half(1), 0x1p-24F);
  EXPECT_EQ(bfloat16_of_float(1.0F + 0x1p-8F), 0x3f80);  // a tie, to even
  EXPECT_EQ(bfloat16_of_float(1.0F + 0x1p-8F + 0x1p-20F), 0x3f81);
  EXPECT_TRUE(std::isnan(float_of_bfloat16(bfloat16_of_float(std::nanf("")))));
}

// Of the narrow types, by the bits.
struct NarrowType {
  ElementType type;
  int bits;
  int exponent_bits;
  bool has_infinity;
  float (*widen)(std::uint32_t bits);
  std::uint32_t (*narrow)(float value);
};
const NarrowType kNarrowTypes[] = {
    {ElementType::kFloat16, 16, 5, true,
     [](std::uint32_t bits) { return float_of_half(static_cast<std::uint16_t>(bits)); },
     [](float value) -> std::uint32_t { return half_of_float(value); }},
    {ElementType::kBfloat16, 16, 8, true,
     [](std::uint32_t bits) { return float_of_bfloat16(static_cast<std::uint16_t>(bits)); },
     [](float value) -> std::uint32_t { return bfloat16_of_float(value); }},
    {ElementType::kFloat8E4m3fn, 8, 4, false,
     [](std::uint32_t bits) { return float_of_float8_e4m3fn(static_cast<std::uint8_t>(bits)); },
     [](float value) -> std::uint32_t { return float8_e4m3fn_of_float(value); }},
    {ElementType::kFloat8E5m2, 8, 5, true,
     [](std::uint32_t bits) { return float_of_float8_e5m2(static_cast<std::uint8_t>(bits)); },
     [](float value) -> std::uint32_t { return float8_e5m2_of_float(value); }},
};

// What a type's bits mean, by its definition.
double value_of(const NarrowType& type, std::uint32_t bits) {
  const int mantissa_bits = type.bits - 1 - type.exponent_bits;
  const auto exponent =
      static_cast<int>((bits >> mantissa_bits) & ((1U << type.exponent_bits) - 1));
  const std::uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
  const double sign = (bits >> (type.bits - 1)) != 0 ? -1 : 1;
  const int greatest = (1 << type.exponent_bits) - 1;
  const int bias = (1 << (type.exponent_bits - 1)) - 1;
  if (type.has_infinity && exponent == greatest)
    return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (!type.has_infinity && exponent == greatest && mantissa + 1 == 1U << mantissa_bits)
    return std::nan("");
  const double fraction = std::ldexp(mantissa, -mantissa_bits) + (exponent == 0 ? 0 : 1);
  return sign * std::ldexp(fraction, std::max(exponent, 1) - bias);
}

TEST(NarrowFloatsTest, MeanWhatTheirDefinitionSays) {
  for (const NarrowType& type : kNarrowTypes) {
    for (std::uint32_t bits = 0; bits < 1U << type.bits; ++bits) {
      const double expected = value_of(type, bits);
      const float wide = type.widen(bits);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide)) << bits;
        ASSERT_TRUE(std::isnan(value_of(type, type.narrow(wide)))) << bits;
        continue;
      }
      ASSERT_EQ(wide, expected) << bits;
      ASSERT_EQ(std::signbit(wide), std::signbit(expected)) << bits;
      ASSERT_EQ(type.narrow(wide), bits);
    }
  }
}

// A number and the next greater one: of what is between them the nearer is taken, and in the middle
// the even one.
void expect_nearest(const NarrowType& type, std::uint32_t bits, double low, double high) {
  const auto middle = static_cast<float>((low + high) / 2);
  const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
  for (const std::uint32_t sign : {0U, 1U << (type.bits - 1)}) {
    const auto narrowed = [&](float value) { return type.narrow(sign != 0 ? -value : value); };
    EXPECT_EQ(narrowed(middle), even | sign) << bits;
    EXPECT_EQ(narrowed(std::nextafter(middle, 0.0F)), bits | sign) << bits;
    EXPECT_EQ(narrowed(std::nextafter(middle, HUGE_VALF)), (bits + 1) | sign) << bits;
  }
}

// For every pair of a type. Behind the greatest stands infinity where there is one.
TEST(NarrowFloatsTest, RoundToTheNearest) {
  for (const NarrowType& type : kNarrowTypes) {
    for (std::uint32_t bits = 0; std::isfinite(value_of(type, bits)); ++bits) {
      const double low = value_of(type, bits);
      double high = value_of(type, bits + 1);
      if (!std::isfinite(high) && !type.has_infinity) break;
      if (!std::isfinite(high)) high = low + (low - value_of(type, bits - 1));
      if (high <= std::numeric_limits<float>::max()) expect_nearest(type, bits, low, high);
    }
  }
}

TEST(NarrowFloatsTest, TooBigIsInfinityOrTheGreatest) {
  EXPECT_EQ(float8_e4m3fn_of_float(464), 0x7e);  // a tie, to the even 448
  EXPECT_EQ(float8_e4m3fn_of_float(470), 0x7e);
  EXPECT_EQ(float8_e4m3fn_of_float(480), 0x7e);
  EXPECT_EQ(float8_e4m3fn_of_float(-HUGE_VALF), 0xfe);
  EXPECT_EQ(float8_e5m2_of_float(61439), 0x7b);
  EXPECT_EQ(float8_e5m2_of_float(61440), 0x7c);
  EXPECT_EQ(float8_e5m2_of_float(-HUGE_VALF), 0xfc);
  EXPECT_EQ(bfloat16_of_float(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(NarrowFloatsTest, NansKeepTheirSignAndUpperBits) {
  const auto nan = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  EXPECT_EQ(half_of_float(nan(0x7f802001)), 0x7e01);
  EXPECT_EQ(half_of_float(nan(0xffc46000)), 0xfe23);
  EXPECT_EQ(bfloat16_of_float(nan(0xff810001)), 0xffc1);
  EXPECT_EQ(bfloat16_of_float(nan(0x7fffffff)), 0x7fff);
  EXPECT_EQ(float8_e4m3fn_of_float(nan(0xff800001)), 0xff);
  EXPECT_EQ(float8_e5m2_of_float(nan(0x7f800001)), 0x7f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(float_of_half(0x7c01)), 0x7fc02000);  // made quiet
}

// 1024 halves of 1 and one of 2048: a half cannot count on from there, a float can.
TEST(ElementsTest, HalvesAreSummedAsFloats) {
  const ReductionKernel elements =
      reduction_kernel(static_cast<int>(ElementType::kFloat16), kSum).value();
  std::uint16_t large = half_of_float(2048);
  std::uint16_t one = half_of_float(1);
  const void* sources[5] = {&large, &one, &one, &one, &one};
  std::uint16_t sum = 0;
  elements.combine(&sum, sources, 5, 1);
  EXPECT_EQ(float_of_half(sum), 2052.0F);
}

std::vector<Instructions> instruction_sets() {
  std::vector<Instructions> sets;
  for (int set = 0; set <= static_cast<int>(best_instructions()); ++set)
    sets.push_back(static_cast<Instructions>(set));
  return sets;
}

// Widened and narrowed by each instruction set: what a kernel makes of one source.
TEST(InstructionSetsTest, WidenAndNarrowAlike) {
  for (const NarrowType& type : kNarrowTypes) {
    const std::uint32_t count = 1U << type.bits;
    std::vector<std::uint16_t> all(count);
    std::vector<std::uint16_t> expected(count);
    const auto put = [&](std::vector<std::uint16_t>& to, std::uint32_t i, std::uint32_t bits) {
      const auto narrow = static_cast<std::uint8_t>(bits);
      const auto wide = static_cast<std::uint16_t>(bits);
      auto* const bytes = reinterpret_cast<std::byte*>(to.data());
      if (type.bits == 8)
        std::memcpy(bytes + i, &narrow, sizeof narrow);
      else
        std::memcpy(bytes + i * sizeof wide, &wide, sizeof wide);
    };
    for (std::uint32_t i = 0; i < count; ++i) {
      put(all, i, i);
      put(expected, i, type.narrow(type.widen(i)));
    }
    for (const Instructions set : instruction_sets()) {
      std::vector<std::uint16_t> result(count);
      const void* sources[] = {all.data()};
      reduction_kernel(type.type, Operator::kMax, set).combine(result.data(), sources, 1, count);
      EXPECT_EQ(result, expected) << static_cast<int>(type.type) << " " << static_cast<int>(set);
    }
  }
}

// Bytes that are numbers of any kind in any type: subnormals, infinities, NaNs.
std::vector<std::byte> any_bytes(std::size_t bytes, std::mt19937& draw) {
  std::vector<std::byte> all(bytes);
  for (std::byte& byte : all) byte = static_cast<std::byte>(draw());
  return all;
}

// Whose sums cancel, and whose products and sums are often subnormal: the exponents are near each
// other, small ones for every other seed.
std::vector<std::byte> near_numbers(const ReductionKernel& kernel, std::size_t count, int seed,
                                    std::mt19937& draw) {
  std::vector<std::byte> all = any_bytes(count * kernel.bytes, draw);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte& upper = all[(i + 1) * kernel.bytes - 1];
    upper &= std::byte{0x81};
    if (seed % 2 != 0) upper |= std::byte{0x3e};
  }
  return all;
}

bool is_floating_point(ElementType type) {
  return type >= ElementType::kFloat16 && type != ElementType::kLongDouble;
}

using Arrays = std::vector<std::vector<std::byte>>;

// Only one of the sources has any bytes, thus NaNs: which of two NaNs goes on is not said.
Arrays values_of(const ReductionKernel& kernel, int members, std::size_t count, int seed) {
  std::mt19937 draw(static_cast<unsigned>(seed));
  Arrays values(static_cast<std::size_t>(members));
  for (int member = 0; member < members; ++member) {
    const bool has_any = member == seed % members && is_floating_point(kernel.type);
    values[static_cast<std::size_t>(member)] =
        has_any ? any_bytes(count * kernel.bytes, draw) : near_numbers(kernel, count, seed, draw);
  }
  return values;
}

// The result, from arrays at odd addresses: apart from the sources, in place of the first one and
// in place of the last one.
std::vector<std::byte> combined(const ReductionKernel& kernel, const Arrays& values,
                                std::size_t count, int place) {
  const std::size_t shift = static_cast<std::size_t>(place) * 3 + 1;
  Arrays arrays(values.size() + 1);
  std::vector<const void*> sources(values.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    arrays[i].resize(shift + values[0].size());
    if (i == values.size()) break;
    std::memcpy(arrays[i].data() + shift, values[i].data(), values[i].size());
    sources[i] = arrays[i].data() + shift;
  }
  auto& into = arrays[place == 0 ? values.size() : place == 1 ? 0 : values.size() - 1];
  kernel.combine(into.data() + shift, sources.data(), static_cast<int>(sources.size()), count);
  into.erase(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(shift));
  return into;
}

template <typename Real>
void make_nans_alike(std::vector<std::byte>& values) {
  for (std::size_t at = 0; at < values.size(); at += sizeof(Real)) {
    Real value = 0;
    std::memcpy(&value, values.data() + at, sizeof value);
    if (!std::isnan(value)) continue;
    value = std::numeric_limits<Real>::quiet_NaN();
    std::memcpy(values.data() + at, &value, sizeof value);
  }
}

// In a product of complex numbers NaNs of both parts meet, and which one goes on is not said.
std::vector<std::byte> comparable(const ReductionKernel& kernel, std::vector<std::byte> values) {
  if (kernel.op != Operator::kProduct) return values;
  if (kernel.type == ElementType::kComplex64) make_nans_alike<float>(values);
  if (kernel.type == ElementType::kComplex128) make_nans_alike<double>(values);
  return values;
}

void compare_sets(const ReductionKernel& baseline, int members, std::size_t count, int seed) {
  const Arrays values = values_of(baseline, members, count, seed);
  const auto expected = comparable(baseline, combined(baseline, values, count, 0));
  for (const Instructions set : instruction_sets()) {
    const ReductionKernel& kernel = reduction_kernel(baseline.type, baseline.op, set);
    for (int place = 0; place < 3; ++place)
      ASSERT_EQ(comparable(kernel, combined(kernel, values, count, place)), expected)
          << "operation " << static_cast<int>(kernel.op) << ", set " << static_cast<int>(set)
          << ", place " << place << ", members " << members << ", count " << count << ", seed "
          << seed;
  }
}

// Every type and operation that there is, any number of sources, sizes that fill no vector.
class EveryKernelTest : public testing::TestWithParam<int> {};

TEST_P(EveryKernelTest, GivesTheSameBitsWithEveryInstructionSet) {
  const auto type = static_cast<ElementType>(GetParam());
  for (int op = 0; op < kOperators; ++op) {
    const ReductionKernel& baseline =
        reduction_kernel(type, static_cast<Operator>(op), Instructions::kBaseline);
    if (baseline.combine == nullptr) continue;
    for (int seed = 0; seed < 6; ++seed)
      for (int members = 1; members <= 5; ++members)
        for (const std::size_t count : {1, 7, 31, 33, 63, 257, 2111})
          compare_sets(baseline, members, count, seed);
  }
}
INSTANTIATE_TEST_SUITE_P(Types, EveryKernelTest,
                         testing::Range(0, static_cast<int>(ElementType::kLongDouble)));

// The sum of every pair of numbers of 8 bits.
TEST(InstructionSetsTest, SumEveryPairOfSmallNumbers) {
  for (const NarrowType& type : kNarrowTypes) {
    if (type.bits != 8) continue;
    std::vector<std::uint8_t> first(0x10000);
    std::vector<std::uint8_t> second(0x10000);
    for (std::uint32_t i = 0; i < 0x10000; ++i) {
      first[i] = static_cast<std::uint8_t>(i);
      second[i] = static_cast<std::uint8_t>(i >> 8);
    }
    for (const Instructions set : instruction_sets()) {
      std::vector<std::uint8_t> sum(0x10000);
      const void* sources[] = {first.data(), second.data()};
      reduction_kernel(type.type, Operator::kSum, set).combine(sum.data(), sources, 2, sum.size());
      for (std::uint32_t i = 0; i < 0x10000; ++i) {
        const float exact = type.widen(first[i]) + type.widen(second[i]);
        if (std::isnan(exact))
          ASSERT_TRUE(std::isnan(value_of(type, sum[i]))) << i;
        else
          ASSERT_EQ(sum[i], type.narrow(exact)) << i << " " << static_cast<int>(set);
      }
    }
  }
}

TEST(ElementsTest, EveryOperatorOfEveryType) {
  std::int8_t a = 100;
  std::int8_t b = 100;
  const void* sources[2] = {&a, &b};
  std::int8_t result = 0;
  reduction_kernel(0, 0).value().combine(&result, sources, 2, 1);
  EXPECT_EQ(result, static_cast<std::int8_t>(200));
  b = 3;
  const std::int8_t expected[] = {103, 44, 3, 100, 0, 103, 103};
  for (int op = 0; op < 7; ++op) {
    reduction_kernel(0, op).value().combine(&result, sources, 2, 1);
    EXPECT_EQ(result, expected[op]) << op;
  }
  double x[2] = {1.5, -2};
  double y[2] = {4, 0.25};
  const void* wide[2] = {x, y};
  double got[2] = {};
  reduction_kernel(static_cast<int>(ElementType::kFloat64), static_cast<int>(Operator::kAverage))
      .value()
      .combine(got, wide, 2, 2);
  EXPECT_EQ(got[0], 2.75);
  EXPECT_EQ(got[1], -0.875);
  // (1.5 - 2i) * (4 + 0.25i)
  reduction_kernel(static_cast<int>(ElementType::kComplex128), static_cast<int>(Operator::kProduct))
      .value()
      .combine(got, wide, 2, 1);
  EXPECT_EQ(got[0], 6.5);
  EXPECT_EQ(got[1], 0.375 - 8);
}

}  // namespace
}  // namespace memspan
