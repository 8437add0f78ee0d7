// SPDX-License-Identifier: Apache-2.0
// Products of matrices by tiles, bands of whole rows.
#pragma once

#include <vector>

#include "example.h"

namespace example {

struct Shape {
  std::size_t rows, inner, columns, tile;  // tile: rows of a tile; divides rows
  MEMSPAN_HOST_DEVICE std::size_t tiles() const { return rows / tile; }
  MEMSPAN_HOST_DEVICE std::size_t tile_elements() const { return tile * columns; }
};

// By all threads of the block together, of which this is thread `index` of `count`.
template <typename T>
MEMSPAN_HOST_DEVICE void multiply_tile(T* c, const T* a, const T* b, const Shape& shape,
                                       std::size_t tile, std::size_t index = 0,
                                       std::size_t count = 1) {
  for (std::size_t i = 0; i < shape.tile; ++i)
    for (std::size_t j = index; j < shape.columns; j += count) {
      T sum{};
      for (std::size_t l = 0; l < shape.inner; ++l)
        sum += a[(tile * shape.tile + i) * shape.inner + l] * b[l * shape.columns + j];
      c[i * shape.columns + j] = sum;
    }
}

// What the PE multiplies.
template <typename Matrix>
void fill(Matrix& a, Matrix& b, int pe) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = element<typename Matrix::value_type>(pe, i);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = element<typename Matrix::value_type>(pe + 3, i);
}

// What all PEs' products sum up to.
template <typename T>
std::vector<T> sum_of_products(const Shape& shape) {
  std::vector<T> a(shape.rows * shape.inner);
  std::vector<T> b(shape.inner * shape.columns);
  std::vector<T> sum(shape.rows * shape.columns);
  std::vector<T> tile(shape.tile_elements());
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    fill(a, b, pe);
    for (std::size_t t = 0; t < shape.tiles(); ++t) {
      multiply_tile(tile.data(), a.data(), b.data(), shape, t);
      for (std::size_t i = 0; i < tile.size(); ++i) sum[t * tile.size() + i] += tile[i];
    }
  }
  return sum;
}

}  // namespace example
