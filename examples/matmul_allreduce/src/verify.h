// SPDX-License-Identifier: Apache-2.0
// The float64 reference and the comparison of every element with it.
//
// The inputs are made again from the seed (nothing that the job wrote is believed), and multiplied
// in double by blocks. The bound of an element, whose reference is c, is
//
//     u |c|  +  half the type's least step  +  4 n 2^-24        n = K * ranks
//
// u = 2^-11, 2^-8, 2^-24 for fp16, bf16, float: the last rounding. The rest is what n float
// additions may add: input products have mean 0 and variance 1/9, so that a partial sum of k
// terms is about sqrt(k)/3 and its rounding error at most 2^-24 of it; errors of n such steps add
// up like a random walk to 0.14 n 2^-24. The factor 4 stands 29 standard deviations away, and is
// still far below what one missing or doubled product (about 0.3) would do. int32 must be equal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "element_type.h"
#include "pages.h"
#include "random_matrix.h"
#include "tiles.h"

namespace matmul {

// What the job is, as far as its result depends on it.
struct JobSpec {
  Shape shape;
  ElementType type = ElementType::kFp16;
  std::uint64_t ranks = 1;
  std::uint64_t seed = 0;

  RandomMatrix matrix(std::uint64_t rank, MatrixName name) const;
};

double error_bound(const JobSpec& spec, double reference);

// Adds up over blocks.
struct Comparison {
  std::uint64_t elements = 0;
  std::uint64_t wrong = 0;
  double worst = 0;  // largest error, as a part of its bound; int32: 0, or 1 when wrong
  double error_squares = 0, reference_squares = 0;
  // Of the first wrong element.
  std::uint64_t row = 0, column = 0;
  double got = 0, expected = 0;
};

// Computes the reference of blocks of the result. One thread at a time.
class Reference {
 public:
  static constexpr std::uint64_t kMostRows = 512, kMostColumns = 1024, kMostDepth = 512;
  // What one takes, for the sum of a job's memory.
  static std::uint64_t bytes(const Shape& shape);

  explicit Reference(const JobSpec& spec);
  bool is_valid() const { return a_.is_valid() && b_.is_valid() && sums_.is_valid(); }
  // The sum over all ranks of A * B in the block (at most kMostRows x kMostColumns), row-major
  // without gaps. Valid until the next call.
  const double* compute(const Tile& block);

 private:
  void add(const Tile& block, std::uint64_t rank, std::uint64_t start, std::uint64_t depth);

  JobSpec spec_;
  Pages a_, b_, sums_;
};

// Compares the block with its reference. `result` is the block's first element in a matrix with
// `stride` elements from row to row.
void compare(const JobSpec& spec, const Tile& block, const double* reference, const void* result,
             std::size_t stride, Comparison& comparison);

}  // namespace matmul
