// SPDX-License-Identifier: Apache-2.0
#include "random_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "convert.h"

namespace matmul {
namespace {

constexpr ElementType kTypes[] = {ElementType::kFp16, ElementType::kBf16, ElementType::kFloat,
                                  ElementType::kInt32};

std::vector<double> row_of(const RandomMatrix& matrix, std::uint64_t row, std::size_t count) {
  std::vector<double> values(count);
  matrix.fill_double(row, 0, count, values.data());
  return values;
}

TEST(RandomMatrixTest, AnyPartIsTheSameAsThePartOfTheWhole) {
  for (ElementType type : kTypes) {
    RandomMatrix matrix{7, 3, MatrixName::kB, type, 100};
    std::size_t bytes = element_bytes(type);
    std::vector<std::byte> whole(3000 * bytes), part(1500 * bytes);
    matrix.fill(11, 5, 3000, whole.data());
    for (std::size_t start : {0, 1, 17, 1019, 1024, 1500}) {
      matrix.fill(11, 5 + start, 1500, part.data());
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + start * bytes, part.size()), 0) << start;
    }
    std::vector<double> wide(3000), made(3000);
    widen_to_double(type, whole.data(), wide.data(), 3000);
    matrix.fill_double(11, 5, 3000, made.data());
    EXPECT_EQ(wide, made);
  }
}

TEST(RandomMatrixTest, EverythingThatNamesAnElementMatters) {
  RandomMatrix matrix{7, 3, MatrixName::kA, ElementType::kFloat, 1};
  std::vector<double> row = row_of(matrix, 0, 100);
  EXPECT_EQ(row, row_of(matrix, 0, 100));
  EXPECT_NE(row, row_of(matrix, 1, 100));
  for (RandomMatrix other : {RandomMatrix{8, 3, MatrixName::kA, ElementType::kFloat, 1},
                             RandomMatrix{7, 4, MatrixName::kA, ElementType::kFloat, 1},
                             RandomMatrix{7, 3, MatrixName::kB, ElementType::kFloat, 1}})
    EXPECT_NE(row, row_of(other, 0, 100));
}

TEST(RandomMatrixTest, FloatingPointIsUniformInMinusOneToOne) {
  for (ElementType type : {ElementType::kFp16, ElementType::kBf16, ElementType::kFloat}) {
    RandomMatrix matrix{1, 0, MatrixName::kA, type, 1};
    double sum = 0, squares = 0;
    for (std::uint64_t row = 0; row < 100; ++row)
      for (double value : row_of(matrix, row, 10000)) {
        ASSERT_LE(std::abs(value), 1);
        sum += value;
        squares += value * value;
      }
    EXPECT_NEAR(sum / 1e6, 0, 0.003);
    EXPECT_NEAR(squares / 1e6, 1.0 / 3, 0.003);
  }
}

TEST(RandomMatrixTest, NeighboursAreUncorrelated) {
  RandomMatrix matrix{1, 0, MatrixName::kA, ElementType::kFloat, 1};
  double along = 0, across = 0;
  std::vector<double> above = row_of(matrix, 0, 10001);
  for (std::uint64_t row = 1; row <= 100; ++row) {
    std::vector<double> here = row_of(matrix, row, 10001);
    for (std::size_t i = 0; i < 10000; ++i) {
      along += here[i] * here[i + 1];
      across += here[i] * above[i];
    }
    above = here;
  }
  EXPECT_NEAR(along / 1e6, 0, 0.002);
  EXPECT_NEAR(across / 1e6, 0, 0.002);
}

TEST(RandomMatrixTest, Int32UsesItsWholeRangeAndNoMore) {
  RandomMatrix matrix{1, 0, MatrixName::kA, ElementType::kInt32, 3};
  int seen[7] = {};
  for (double value : row_of(matrix, 0, 7000)) {
    ASSERT_LE(std::abs(value), 3);
    ++seen[static_cast<int>(value) + 3];
  }
  for (int count : seen) EXPECT_NEAR(count, 1000, 200);
}

TEST(RandomMatrixTest, Int32SumsCannotOverflow) {
  for (std::uint64_t k : {1, 3, 2048, 1 << 20})
    for (std::uint64_t ranks : {1, 2, 64}) {
      auto limit = static_cast<double>(int32_input_limit(k, ranks));
      EXPECT_GE(limit, 1);
      EXPECT_LT(static_cast<double>(k) * static_cast<double>(ranks) * limit * limit, 2147483648.0);
    }
}

}  // namespace
}  // namespace matmul
