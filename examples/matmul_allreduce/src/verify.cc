// SPDX-License-Identifier: Apache-2.0
#include "verify.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "blas.h"
#include "convert.h"

namespace matmul {
namespace {

struct Rounding {
  double unit = 0;       // relative
  double half_step = 0;  // absolute, for subnormal numbers
};

Rounding rounding(ElementType type) {
  switch (type) {
    case ElementType::kFp16:
      return {0x1p-11, 0x1p-25};
    case ElementType::kBf16:
      return {0x1p-8, 0x1p-134};
    case ElementType::kFloat:
      return {0x1p-24, 0x1p-150};
    case ElementType::kInt32:
      return {0, 0};
  }
  return {};
}

struct Extent {
  std::uint64_t rows = 0, columns = 0, depth = 0;
};

Extent extent(const Shape& shape) {
  return {std::min(shape.m, Reference::kMostRows), std::min(shape.n, Reference::kMostColumns),
          std::min(shape.k, Reference::kMostDepth)};
}

struct Element {
  std::uint64_t row = 0, column = 0;
  double got = 0, expected = 0;
};

void compare_one(const JobSpec& spec, const Element& element, Comparison& comparison) {
  double error = std::abs(element.got - element.expected);
  double bound = error_bound(spec, element.expected);
  bool is_right = error <= bound;  // false for a NaN
  double part = bound > 0 ? error / bound : (is_right ? 0.0 : 1.0);
  comparison.worst = std::max(comparison.worst, std::isnan(part) ? 1e300 : part);
  comparison.error_squares += error * error;
  comparison.reference_squares += element.expected * element.expected;
  if (is_right || comparison.wrong++ != 0) return;
  comparison.row = element.row;
  comparison.column = element.column;
  comparison.got = element.got;
  comparison.expected = element.expected;
}

}  // namespace

RandomMatrix JobSpec::matrix(std::uint64_t rank, MatrixName name) const {
  return {seed, rank, name, type, int32_input_limit(shape.k, ranks)};
}

double error_bound(const JobSpec& spec, double reference) {
  if (spec.type == ElementType::kInt32) return 0;
  double steps = static_cast<double>(spec.shape.k) * static_cast<double>(spec.ranks);
  Rounding last = rounding(spec.type);
  double sums = 4 * steps * 0x1p-24;
  return last.unit * (std::abs(reference) + sums) + last.half_step + sums;
}

std::uint64_t Reference::bytes(const Shape& shape) {
  Extent most = extent(shape);
  return sizeof(double) *
         (most.rows * most.depth + most.depth * most.columns + most.rows * most.columns);
}

Reference::Reference(const JobSpec& spec) : spec_(spec) {
  Extent most = extent(spec.shape);
  a_ = Pages(most.rows * most.depth * sizeof(double));
  b_ = Pages(most.depth * most.columns * sizeof(double));
  sums_ = Pages(most.rows * most.columns * sizeof(double));
}

const double* Reference::compute(const Tile& block) {
  std::fill_n(sums_.as<double>(), block.elements(), 0.0);
  for (std::uint64_t rank = 0; rank < spec_.ranks; ++rank)
    for (std::uint64_t start = 0; start < spec_.shape.k; start += kMostDepth)
      add(block, rank, start, std::min(kMostDepth, spec_.shape.k - start));
  return sums_.as<double>();
}

void Reference::add(const Tile& block, std::uint64_t rank, std::uint64_t start,
                    std::uint64_t depth) {
  RandomMatrix a = spec_.matrix(rank, MatrixName::kA);
  RandomMatrix b = spec_.matrix(rank, MatrixName::kB);
  for (std::uint64_t row = 0; row < block.rows; ++row)
    a.fill_double(block.row + row, start, depth, a_.as<double>() + row * depth);
  for (std::uint64_t row = 0; row < depth; ++row)
    b.fill_double(start + row, block.column, block.columns, b_.as<double>() + row * block.columns);
  Product<double> product;
  product.rows = static_cast<std::int64_t>(block.rows);
  product.columns = static_cast<std::int64_t>(block.columns);
  product.depth = static_cast<std::int64_t>(depth);
  product.a = a_.as<double>();
  product.a_stride = product.depth;
  product.b = b_.as<double>();
  product.b_stride = product.columns;
  product.beta = 1;
  product.c = sums_.as<double>();
  product.c_stride = product.columns;
  multiply(product);
}

void compare(const JobSpec& spec, const Tile& block, const double* reference, const void* result,
             std::size_t stride, Comparison& comparison) {
  constexpr std::uint64_t kStrip = 256;
  std::array<double, kStrip> got;
  const auto* bytes = static_cast<const std::byte*>(result);
  for (std::uint64_t row = 0; row < block.rows; ++row) {
    for (std::uint64_t column = 0; column < block.columns; column += kStrip) {
      std::uint64_t count = std::min(kStrip, block.columns - column);
      widen_to_double(spec.type, bytes + (row * stride + column) * element_bytes(spec.type),
                      got.data(), count);
      for (std::uint64_t i = 0; i < count; ++i)
        compare_one(spec,
                    {block.row + row, block.column + column + i, got[i],
                     reference[row * block.columns + column + i]},
                    comparison);
    }
  }
  comparison.elements += block.elements();
}

}  // namespace matmul
