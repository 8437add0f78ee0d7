// SPDX-License-Identifier: Apache-2.0
// The two matrix products that libraries give us, row-major, on one thread: float from oneDNN
// when it was found at build time (a tenth to a fifth faster here), else from OpenBLAS; double
// from OpenBLAS.
#pragma once

#include <cstdint>

#include "options.h"

namespace matmul {

// c = a * b + beta * c; a is rows x depth, b is depth x columns. Strides in elements.
template <typename T>
struct Product {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const T* a = nullptr;
  std::int64_t a_stride = 0;
  const T* b = nullptr;
  std::int64_t b_stride = 0;
  T beta = 0;
  T* c = nullptr;
  std::int64_t c_stride = 0;
};

// Sizes and strides above this must be cut into panels: OpenBLAS counts in 32 bits.
inline constexpr std::int64_t kMostBlasExtent = 0x7fffffff;

bool has_onednn();
const char* blas_name(Blas blas);  // what kAuto stands for, too
// Every rank has its own core, or less: call once, before the first product.
void use_one_blas_thread();

void multiply(Blas blas, const Product<float>& product);
void multiply(const Product<double>& product);

}  // namespace matmul
