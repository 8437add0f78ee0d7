// SPDX-License-Identifier: Apache-2.0
// One rank's product, a tile at a time, in its partial type (float, or int32 modulo 2^32).
//
// The inner dimension is cut into panels. A panel of B is converted once for a column of tiles.
//
//   float   the matrices are used where they are
//   bf16    packed for the processor's bf16 unit (bf16_product.h), or converted to float
//   fp16    if the processor has a bf16 matrix unit: each number is the sum of two bf16 numbers,
//               a * b = low * low + low * high + high * low + high * high,
//           else converted to float. Infinite inputs may give NaNs on the matrix unit.
//   int32   converted to double, whose products are exact up to 2^53: as they are when the inputs
//           are small enough for that, else split into 16-bit halves,
//               a * b = low * low + 2^16 (low * high + high * low)   (mod 2^32)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bf16_product.h"
#include "blas.h"
#include "element_type.h"
#include "pages.h"
#include "tiles.h"

namespace matmul {

// The type of the numbers, and what multiplies them.
struct Multiplier {
  ElementType type = ElementType::kFp16;
  Blas blas = Blas::kAuto;
  Bf16Unit unit = bf16_unit();
};

// The depth of panels and the bytes that they take, known before any memory is allocated. `Gemm`
// may use less.
struct PanelPlan {
  PanelPlan(const Shape& shape, const Multiplier& by, const TilePlan& tiles);
  bool is_direct = false;  // no panels: the library reads the matrices
  std::uint64_t depth = 0;
  std::uint64_t a_bytes = 0, b_bytes = 0, tile_bytes = 0;
  std::uint64_t parts = 0;         // bf16 numbers that make one number; 0: no bf16 unit is used
  std::uint64_t packed_bytes = 0;  // of B for the bf16 unit, each part of a number
  std::uint64_t bytes() const { return a_bytes + b_bytes + tile_bytes + parts * packed_bytes; }
};

// One thread at a time. Does not own the matrices, row-major without gaps.
class Gemm {
 public:
  struct Input {
    Shape shape;
    Multiplier by;
    const void* a = nullptr;
    const void* b = nullptr;
  };
  Gemm(const Input& input, const TilePlan& tiles);

  bool is_valid() const {
    return a_.is_valid() && b_.is_valid() && packed_.is_valid() && tile_.is_valid();
  }
  const char* library() const;  // that multiplies, for people
  // Writes the tile's product to `out`, `stride` elements from row to row.
  void multiply(const Tile& tile, void* out, std::size_t stride);

 private:
  struct Panel {
    Tile tile;
    std::uint64_t start = 0, depth = 0;
  };
  void choose_bf16(const TilePlan& tiles);
  void multiply_bf16(const Panel& panel, float* out);
  const std::uint16_t* load_bf16_a(const Panel& panel);
  void load_bf16_b(const Panel& panel, const ProductShape& shape);
  void load_bf16(const std::byte* from, std::uint16_t* to, std::size_t count,
                 std::size_t part) const;
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
  std::unique_ptr<Bf16Product> bf16_;  // null: the bf16 unit is not used
  Pages a_, b_, packed_, tile_;
  // The panel that b_ holds.
  bool b_is_loaded_ = false;
  std::uint64_t b_column_ = 0, b_start_ = 0;
};

}  // namespace matmul
