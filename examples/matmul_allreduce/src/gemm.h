// SPDX-License-Identifier: Apache-2.0
// One rank's product, a tile at a time, in its partial type (float, or int32 modulo 2^32).
//
// The inner dimension is cut into panels. 16-bit panels are converted to float; int32 panels to
// double, whose products are exact up to 2^53: as they are when the inputs are small enough for
// that, else split into 16-bit halves,
//     a * b = low * low + 2^16 (low * high + high * low)   (mod 2^32).
// float matrices are used where they are. A panel of B is converted once for a column of tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blas.h"
#include "element_type.h"
#include "pages.h"
#include "tiles.h"

namespace matmul {

// How deep panels are, and what they take. Decided from the shape alone, so that memory can be
// added up before there is any; `Gemm` may use less.
struct PanelPlan {
  PanelPlan(const Shape& shape, ElementType type, const TilePlan& tiles);
  bool is_direct = false;  // no panels: the library reads the matrices
  std::uint64_t depth = 0;
  std::uint64_t a_bytes = 0, b_bytes = 0, tile_bytes = 0;
  std::uint64_t bytes() const { return a_bytes + b_bytes + tile_bytes; }
};

// One thread at a time. Does not own the matrices, row-major without gaps.
class Gemm {
 public:
  struct Input {
    Shape shape;
    ElementType type = ElementType::kFp16;
    Blas blas = Blas::kAuto;
    const void* a = nullptr;
    const void* b = nullptr;
  };
  Gemm(const Input& input, const TilePlan& tiles);

  bool is_valid() const { return a_.is_valid() && b_.is_valid() && tile_.is_valid(); }
  // Writes the tile's product to `out`, `stride` elements from row to row.
  void multiply(const Tile& tile, void* out, std::size_t stride);

 private:
  struct Panel {
    Tile tile;
    std::uint64_t start = 0, depth = 0;
  };
  void multiply_float(const Panel& panel, float* out, std::size_t stride);
  void multiply_int32(const Panel& panel, std::uint32_t* out, std::size_t stride);
  void multiply_direct(const Tile& tile, float* out, std::size_t stride);
  void choose_split();
  template <typename T, typename Convert>
  void load_a(const Panel& panel, T* to, Convert&& convert);
  template <typename T, typename Convert>
  void load_b(const Panel& panel, T* to, Convert&& convert);
  bool has_b(const Panel& panel);

  Input input_;
  PanelPlan plan_;
  bool is_split_ = false;
  Pages a_, b_, tile_;
  // The panel that b_ holds.
  bool b_is_loaded_ = false;
  std::uint64_t b_column_ = 0, b_start_ = 0;
};

}  // namespace matmul
