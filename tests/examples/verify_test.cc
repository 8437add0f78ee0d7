// SPDX-License-Identifier: Apache-2.0
// The verifier itself: it must accept what the product makes and notice the smallest damage.
#include "verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "convert.h"
#include "gemm.h"

namespace matmul {
namespace {

// A right result, made as the program makes it: products in float, summed, rounded once.
std::vector<std::byte> right_result(const JobSpec& spec) {
  const Shape& shape = spec.shape;
  std::vector<std::byte> sum(shape.m * shape.n * kPartialBytes), part(sum.size());
  TilePlan tiles(shape, spec.ranks);
  for (std::uint64_t rank = 0; rank < spec.ranks; ++rank) {
    std::size_t bytes = element_bytes(spec.type);
    std::vector<std::byte> a(shape.m * shape.k * bytes), b(shape.k * shape.n * bytes);
    for (std::uint64_t row = 0; row < shape.m; ++row)
      spec.matrix(rank, MatrixName::kA).fill(row, 0, shape.k, a.data() + row * shape.k * bytes);
    for (std::uint64_t row = 0; row < shape.k; ++row)
      spec.matrix(rank, MatrixName::kB).fill(row, 0, shape.n, b.data() + row * shape.n * bytes);
    Gemm gemm({shape, {spec.type}, a.data(), b.data()}, tiles);
    for (std::uint64_t number = 0; number < tiles.tiles(); ++number) {
      Tile tile = tiles.tile(number);
      gemm.multiply(tile, part.data() + (tile.row * shape.n + tile.column) * kPartialBytes,
                    shape.n);
    }
    add_partials(spec.type, part.data(), sum.data(), shape.m * shape.n);
  }
  std::vector<std::byte> result(shape.m * shape.n * element_bytes(spec.type));
  finish_partials(spec.type, sum.data(), result.data(), shape.m * shape.n);
  return result;
}

Comparison check(const JobSpec& spec, const std::vector<std::byte>& result) {
  Reference reference(spec);
  Comparison comparison;
  Tile block{0, 0, spec.shape.m, spec.shape.n};
  compare(spec, block, reference.compute(block), result.data(), spec.shape.n, comparison);
  return comparison;
}

class VerifyTest : public testing::TestWithParam<ElementType> {
 protected:
  JobSpec spec(std::uint64_t ranks) const { return {{33, 700, 300}, GetParam(), ranks, 5}; }
};

TEST_P(VerifyTest, AcceptsARightResultWithRoomToSpare) {
  for (std::uint64_t ranks : {1, 3}) {
    Comparison comparison = check(spec(ranks), right_result(spec(ranks)));
    EXPECT_EQ(comparison.wrong, 0u);
    EXPECT_EQ(comparison.elements, 33u * 300u);
    EXPECT_LT(comparison.worst, 1.0);
    EXPECT_GT(comparison.reference_squares, 0);
  }
}

TEST_P(VerifyTest, NoticesOneDamagedElement) {
  std::vector<std::byte> result = right_result(spec(2));
  std::size_t bytes = element_bytes(GetParam());
  std::size_t at = (20 * 300 + 123) * bytes;
  // The lowest bit of an int32; elsewhere the highest of the mantissa.
  if (GetParam() == ElementType::kInt32)
    result[at] ^= std::byte{1};
  else
    result[at + bytes - 2] ^= std::byte{0x40};
  Comparison comparison = check(spec(2), result);
  EXPECT_EQ(comparison.wrong, 1u);
  EXPECT_EQ(comparison.row, 20u);
  EXPECT_EQ(comparison.column, 123u);
  EXPECT_NE(comparison.got, comparison.expected);
}

TEST_P(VerifyTest, NoticesAMissingRank) {
  JobSpec both = spec(2), one = spec(1);
  if (GetParam() == ElementType::kInt32)
    GTEST_SKIP() << "does not apply: the inputs' range depends on the ranks";
  Comparison comparison = check(both, right_result(one));
  EXPECT_GT(comparison.wrong, 33u * 300u * 9 / 10);
}

TEST_P(VerifyTest, NoticesWhatWasNeverWritten) {
  std::vector<std::byte> result(33 * 300 * element_bytes(GetParam()), std::byte{0xff});
  Comparison comparison = check(spec(2), result);
  if (GetParam() == ElementType::kInt32)
    EXPECT_GT(comparison.wrong, 33u * 300u * 99 / 100);
  else
    EXPECT_EQ(comparison.wrong, 33u * 300u);
  EXPECT_GE(comparison.worst, 1.0);
}

INSTANTIATE_TEST_SUITE_P(Types, VerifyTest,
                         testing::Values(ElementType::kFp16, ElementType::kBf16,
                                         ElementType::kFloat, ElementType::kInt32),
                         [](const auto& param) { return std::string(element_name(param.param)); });

TEST(VerifyBoundTest, IsTightEnoughToSeeOneMissingProduct) {
  // The smallest of the types' sums grows with K only slowly.
  JobSpec spec{{1024, 2048, 8192}, ElementType::kFloat, 2, 1};
  EXPECT_LT(error_bound(spec, 30.0), 0.005);
  spec.type = ElementType::kFp16;
  EXPECT_LT(error_bound(spec, 30.0), 0.02);
  spec.type = ElementType::kInt32;
  EXPECT_EQ(error_bound(spec, 1e9), 0.0);
}

TEST(VerifyReferenceTest, AgreesWithASumMadeOneByOne) {
  JobSpec spec{{5, 1100, 7}, ElementType::kFp16, 3, 99};
  Reference reference(spec);
  Tile block{2, 1, 3, 6};
  const double* sums = reference.compute(block);
  for (std::uint64_t row = 0; row < block.rows; ++row)
    for (std::uint64_t column = 0; column < block.columns; ++column) {
      double expected = 0;
      for (std::uint64_t rank = 0; rank < 3; ++rank)
        for (std::uint64_t k = 0; k < 1100; ++k) {
          double a = 0, b = 0;
          spec.matrix(rank, MatrixName::kA).fill_double(block.row + row, k, 1, &a);
          spec.matrix(rank, MatrixName::kB).fill_double(k, block.column + column, 1, &b);
          expected += a * b;
        }
      EXPECT_NEAR(sums[row * block.columns + column], expected, 1e-10);
    }
}

}  // namespace
}  // namespace matmul
