// SPDX-License-Identifier: Apache-2.0
#include "gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "convert.h"
#include "int32_panels.h"

namespace matmul {
namespace {

constexpr char kNoBf16Unit[] = "does not apply: no bf16 unit, or built without oneDNN";

// The whole product, tile by tile, in the partial type.
template <typename T>
std::vector<T> product_of(const Gemm::Input& input) {
  const Shape& shape = input.shape;
  TilePlan tiles(shape, 1);
  Gemm gemm(input, tiles);
  EXPECT_TRUE(gemm.is_valid());
  std::vector<T> product(shape.m * shape.n, static_cast<T>(77));
  for (std::uint64_t number = 0; number < tiles.tiles(); ++number) {
    Tile tile = tiles.tile(number);
    gemm.multiply(tile, product.data() + tile.row * shape.n + tile.column, shape.n);
  }
  return product;
}

// Random numbers in [-1, 1) in a 16-bit type or float, with their values.
struct Matrix {
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

Matrix random_numbers(ElementType type, std::uint64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<float> floats(count);
  for (float& value : floats) value = numbers(random);
  Matrix matrix{std::vector<std::byte>(count * element_bytes(type)), std::vector<double>(count)};
  round_to_type(type, floats.data(), matrix.bytes.data(), count);
  widen_to_double(type, matrix.bytes.data(), matrix.values.data(), count);
  return matrix;
}

// Exact modulo 2^32, one multiplication after the other.
std::vector<std::uint32_t> modular_product(const Shape& shape, const std::vector<std::int32_t>& a,
                                           const std::vector<std::int32_t>& b) {
  std::vector<std::uint32_t> product(shape.m * shape.n);
  for (std::uint64_t i = 0; i < shape.m; ++i)
    for (std::uint64_t k = 0; k < shape.k; ++k)
      for (std::uint64_t j = 0; j < shape.n; ++j)
        product[i * shape.n + j] += static_cast<std::uint32_t>(a[i * shape.k + k]) *
                                    static_cast<std::uint32_t>(b[k * shape.n + j]);
  return product;
}

class GemmInt32Test : public testing::TestWithParam<std::int32_t> {};

TEST_P(GemmInt32Test, IsExactModulo) {
  const Shape shapes[] = {{1, 1, 1}, {7, 13, 5}, {70, 300, 65}, {130, 67, 260}};
  std::mt19937 random(5);
  std::int32_t most = GetParam();
  std::int32_t least = most == std::numeric_limits<std::int32_t>::max() ? -most - 1 : -most;
  std::uniform_int_distribution<std::int32_t> numbers(least, most);
  for (const Shape& shape : shapes) {
    std::vector<std::int32_t> a(shape.m * shape.k), b(shape.k * shape.n);
    for (auto& value : a) value = numbers(random);
    for (auto& value : b) value = numbers(random);
    a[0] = least;
    b[0] = least;
    EXPECT_EQ(product_of<std::uint32_t>({shape, {ElementType::kInt32}, a.data(), b.data()}),
              modular_product(shape, a, b));
  }
}

INSTANTIATE_TEST_SUITE_P(Magnitudes, GemmInt32Test,
                         testing::Values(1, 1000, 46340, 1 << 23, 1 << 24, 1 << 30,
                                         std::numeric_limits<std::int32_t>::max()));

TEST(GemmTest, DeepInt32ProductsAreCutIntoExactPanels) {
  // Unsplit panels of 2^53 / 2^44 = 512: three of them and a rest.
  Shape shape{3, 1700, 2};
  std::vector<std::int32_t> a(shape.m * shape.k, 1 << 22), b(shape.k * shape.n, (1 << 22) - 1);
  EXPECT_EQ(product_of<std::uint32_t>({shape, {ElementType::kInt32}, a.data(), b.data()}),
            modular_product(shape, a, b));
}

// Within the term of the job's bound that sums may use.
void expect_double_product(const Shape& shape, const Multiplier& by) {
  std::mt19937 random(3);
  const Matrix a = random_numbers(by.type, shape.m * shape.k, random);
  const Matrix b = random_numbers(by.type, shape.k * shape.n, random);
  const Gemm::Input input{shape, by, a.bytes.data(), b.bytes.data()};
  // The plain name of the library means that oneDNN refused a shape: floats are multiplied.
  if (by.unit != Bf16Unit::kNone) {
    EXPECT_STRNE(Gemm(input, TilePlan(shape, 1)).library(), blas_name(by.blas));
  }
  const std::vector<float> product = product_of<float>(input);
  for (std::uint64_t i = 0; i < shape.m; ++i) {
    std::vector<double> sums(shape.n);
    for (std::uint64_t k = 0; k < shape.k; ++k)
      for (std::uint64_t j = 0; j < shape.n; ++j)
        sums[j] += a.values[i * shape.k + k] * b.values[k * shape.n + j];
    for (std::uint64_t j = 0; j < shape.n; ++j)
      ASSERT_NEAR(product[i * shape.n + j], sums[j], 4 * static_cast<double>(shape.k) * 0x1p-24);
  }
}

// 1100 is in the range of three products of fp16 parts, smaller depths in that of four.
constexpr Shape kShapes[] = {{1, 1, 1},       {7, 13, 5},   {129, 257, 65},
                             {600, 40, 1100}, {1, 9000, 3}, {70, 1100, 300}};

TEST(GemmTest, FloatingPointTypesMatchADoubleProduct) {
  for (Blas blas : {Blas::kOpenBlas, Blas::kAuto})
    for (ElementType type : {ElementType::kFp16, ElementType::kBf16, ElementType::kFloat})
      for (const Shape& shape : kShapes)
        expect_double_product(shape, {type, blas, Bf16Unit::kNone});
}

// kMatrix makes fp16 products of bf16 parts also on a vector unit.
TEST(GemmTest, TheBf16UnitMatchesADoubleProduct) {
  if (bf16_unit() == Bf16Unit::kNone) GTEST_SKIP() << kNoBf16Unit;
  for (ElementType type : {ElementType::kFp16, ElementType::kBf16})
    for (const Shape& shape : kShapes)
      expect_double_product(shape, {type, Blas::kAuto, Bf16Unit::kMatrix});
}

TEST(GemmTest, TheBf16UnitIsUsedUnlessOpenBlasIsAskedFor) {
  if (bf16_unit() == Bf16Unit::kNone) GTEST_SKIP() << kNoBf16Unit;
  const Shape shape{1024, 2048, 8192};
  const TilePlan tiles(shape, 2);
  auto library = [&](ElementType type, Blas blas, Bf16Unit unit) {
    return std::string(Gemm({shape, {type, blas, unit}, nullptr, nullptr}, tiles).library());
  };
  const std::string matrix_unit = "oneDNN on the matrix unit", vectors = "oneDNN on bf16 vectors";
  EXPECT_EQ(library(ElementType::kFp16, Blas::kAuto, Bf16Unit::kMatrix), matrix_unit);
  EXPECT_EQ(library(ElementType::kBf16, Blas::kOneDnn, Bf16Unit::kMatrix), matrix_unit);
  EXPECT_EQ(library(ElementType::kBf16, Blas::kAuto, Bf16Unit::kVector), vectors);
  EXPECT_EQ(library(ElementType::kFp16, Blas::kAuto, Bf16Unit::kVector), "oneDNN");
  EXPECT_EQ(library(ElementType::kBf16, Blas::kOpenBlas, Bf16Unit::kMatrix), "OpenBLAS");
  EXPECT_EQ(library(ElementType::kFloat, Blas::kAuto, Bf16Unit::kMatrix), "oneDNN");
}

TEST(GemmTest, PanelsDeeperThanTheScratchAreCut) {
  // Two columns of tiles, each in two or three panels: no two panels use equal parts of B.
  const Shape shape{2, 54001, 300};
  for (ElementType type : {ElementType::kFp16, ElementType::kBf16})
    for (Bf16Unit unit : {Bf16Unit::kNone, Bf16Unit::kMatrix}) {
      if (unit != Bf16Unit::kNone && bf16_unit() == Bf16Unit::kNone) continue;
      const Multiplier by{type, Blas::kAuto, unit};
      EXPECT_LT(PanelPlan(shape, by, TilePlan(shape, 1)).depth, shape.k);
      expect_double_product(shape, by);
    }
}

TEST(Int32PanelsTest, HalvesMakeTheWhole) {
  std::int32_t extreme = std::numeric_limits<std::int32_t>::min();
  std::vector<std::int32_t> numbers = {0,      1,      -1,      65535,         65536,
                                       -65536, -65537, extreme, -(extreme + 1)};
  std::vector<double> whole(numbers.size()), low(numbers.size()), high(numbers.size());
  int32_part_to_double(Int32Part::kWhole, numbers.data(), whole.data(), numbers.size());
  int32_part_to_double(Int32Part::kLow, numbers.data(), low.data(), numbers.size());
  int32_part_to_double(Int32Part::kHigh, numbers.data(), high.data(), numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(whole[i], numbers[i]);
    EXPECT_EQ(high[i] * 65536 + low[i], numbers[i]);
  }
  EXPECT_EQ(largest_magnitude(numbers.data(), numbers.size()), 2147483648u);
}

}  // namespace
}  // namespace matmul
