// SPDX-License-Identifier: Apache-2.0
// Random input data that anybody can make again: element (row, column) of matrix A or B of a rank
// is a hash of (seed, rank, matrix, row, column), so that a verifier needs no copy of the inputs.
//
// Floating point types are uniform in [-1, 1), rounded to the type. int32 is uniform in
// [-limit, limit], the limit so small that no sum of the job overflows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "element_type.h"

namespace matmul {

enum class MatrixName : std::uint64_t { kA = 0xa, kB = 0xb };

// The largest absolute value of int32 inputs: k * ranks * limit^2 < 2^31, at most 1000, at least 1.
std::int32_t int32_input_limit(std::uint64_t k, std::uint64_t ranks);

// A value: which matrix.
struct RandomMatrix {
  std::uint64_t seed = 0;
  std::uint64_t rank = 0;
  MatrixName name = MatrixName::kA;
  ElementType type = ElementType::kFp16;
  std::int32_t limit = 1;  // int32 only

  // Elements (row, column) ... (row, column + count - 1), in the type.
  void fill(std::uint64_t row, std::uint64_t column, std::size_t count, void* to) const;
  // The same elements, exactly, as double.
  void fill_double(std::uint64_t row, std::uint64_t column, std::size_t count, double* to) const;
};

}  // namespace matmul
