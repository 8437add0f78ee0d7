// SPDX-License-Identifier: Apache-2.0
#include "gemm.h"

#include <algorithm>
#include <cstring>

#include "convert.h"
#include "int32_panels.h"

namespace matmul {
namespace {

// One converted panel: 32 MiB keep a whole column of B (up to K = 8192) between tiles, and 64
// ranks' panels out of the way.
constexpr std::uint64_t kPanelBytes = std::uint64_t{32} << 20;
// Two sums of low * high stay exact in a double: 2 * depth * 2^32 <= 2^53.
constexpr std::uint64_t kMostSplitDepth = std::uint64_t{1} << 20;
constexpr std::uint64_t kExactInDouble = std::uint64_t{1} << 53;
// Below this depth an unsplit panel costs more in passes over the tile than it saves.
constexpr std::uint64_t kLeastDepth = 256;

std::uint64_t panel_depth(std::uint64_t k, std::uint64_t most) {
  std::uint64_t panels = (k + most - 1) / most;
  return (k + panels - 1) / panels;
}

}  // namespace

PanelPlan::PanelPlan(const Shape& shape, ElementType type, const TilePlan& tiles) {
  auto most = static_cast<std::uint64_t>(kMostBlasExtent);
  is_direct = type == ElementType::kFloat && shape.k <= most && shape.n <= most;
  if (is_direct) {
    depth = shape.k;
    return;
  }
  bool is_int32 = type == ElementType::kInt32;
  // int32 may need both halves of each number.
  std::uint64_t bytes = is_int32 ? 2 * sizeof(double) : sizeof(float);
  std::uint64_t widest = std::max(tiles.tile_rows(), tiles.tile_columns());
  depth = panel_depth(shape.k, std::max<std::uint64_t>(1, kPanelBytes / (widest * bytes)));
  if (is_int32) depth = std::min(depth, kMostSplitDepth);
  a_bytes = tiles.tile_rows() * depth * bytes;
  b_bytes = tiles.tile_columns() * depth * bytes;
  tile_bytes = is_int32 ? tiles.tile_rows() * tiles.tile_columns() * sizeof(double) : 0;
}

Gemm::Gemm(const Input& input, const TilePlan& tiles)
    : input_(input),
      plan_(input.shape, input.type, tiles),
      a_(plan_.a_bytes),
      b_(plan_.b_bytes),
      tile_(plan_.tile_bytes) {
  if (input.type == ElementType::kInt32) choose_split();
}

void Gemm::choose_split() {
  const Shape& shape = input_.shape;
  std::uint64_t a =
      largest_magnitude(static_cast<const std::int32_t*>(input_.a), shape.m * shape.k);
  std::uint64_t b =
      largest_magnitude(static_cast<const std::int32_t*>(input_.b), shape.k * shape.n);
  std::uint64_t exact_depth = kExactInDouble / std::max<std::uint64_t>(1, a * b);
  is_split_ = exact_depth < std::min(plan_.depth, kLeastDepth);
  if (!is_split_) plan_.depth = std::min(plan_.depth, exact_depth);
}

void Gemm::multiply(const Tile& tile, void* out, std::size_t stride) {
  if (plan_.is_direct) return multiply_direct(tile, static_cast<float*>(out), stride);
  for (std::uint64_t start = 0; start < input_.shape.k; start += plan_.depth) {
    Panel panel{tile, start, std::min(plan_.depth, input_.shape.k - start)};
    if (input_.type == ElementType::kInt32)
      multiply_int32(panel, static_cast<std::uint32_t*>(out), stride);
    else
      multiply_float(panel, static_cast<float*>(out), stride);
  }
}

template <typename T, typename Convert>
void Gemm::load_a(const Panel& panel, T* to, Convert&& convert) {
  std::size_t bytes = element_bytes(input_.type);
  const auto* from = static_cast<const std::byte*>(input_.a) +
                     (panel.tile.row * input_.shape.k + panel.start) * bytes;
  for (std::uint64_t row = 0; row < panel.tile.rows; ++row)
    convert(from + row * input_.shape.k * bytes, to + row * panel.depth, panel.depth);
}

template <typename T, typename Convert>
void Gemm::load_b(const Panel& panel, T* to, Convert&& convert) {
  std::size_t bytes = element_bytes(input_.type);
  const auto* from = static_cast<const std::byte*>(input_.b) +
                     (panel.start * input_.shape.n + panel.tile.column) * bytes;
  for (std::uint64_t row = 0; row < panel.depth; ++row)
    convert(from + row * input_.shape.n * bytes, to + row * panel.tile.columns, panel.tile.columns);
}

// True when b_ holds this panel's part of B; when not, the caller loads it now.
bool Gemm::has_b(const Panel& panel) {
  bool has = b_is_loaded_ && b_column_ == panel.tile.column && b_start_ == panel.start;
  b_is_loaded_ = true;
  b_column_ = panel.tile.column;
  b_start_ = panel.start;
  return has;
}

void Gemm::multiply_direct(const Tile& tile, float* out, std::size_t stride) {
  const Shape& shape = input_.shape;
  Product<float> product;
  product.rows = static_cast<std::int64_t>(tile.rows);
  product.columns = static_cast<std::int64_t>(tile.columns);
  product.depth = static_cast<std::int64_t>(shape.k);
  product.a = static_cast<const float*>(input_.a) + tile.row * shape.k;
  product.a_stride = static_cast<std::int64_t>(shape.k);
  product.b = static_cast<const float*>(input_.b) + tile.column;
  product.b_stride = static_cast<std::int64_t>(shape.n);
  product.c = out;
  product.c_stride = static_cast<std::int64_t>(stride);
  matmul::multiply(input_.blas, product);
}

void Gemm::multiply_float(const Panel& panel, float* out, std::size_t stride) {
  auto convert = [type = input_.type](const std::byte* from, float* to, std::size_t count) {
    widen_to_float(type, from, to, count);
  };
  load_a(panel, a_.as<float>(), convert);
  if (!has_b(panel)) load_b(panel, b_.as<float>(), convert);
  Product<float> product;
  product.rows = static_cast<std::int64_t>(panel.tile.rows);
  product.columns = static_cast<std::int64_t>(panel.tile.columns);
  product.depth = static_cast<std::int64_t>(panel.depth);
  product.a = a_.as<float>();
  product.a_stride = product.depth;
  product.b = b_.as<float>();
  product.b_stride = product.columns;
  product.beta = panel.start == 0 ? 0.0f : 1.0f;
  product.c = out;
  product.c_stride = static_cast<std::int64_t>(stride);
  matmul::multiply(input_.blas, product);
}

void Gemm::multiply_int32(const Panel& panel, std::uint32_t* out, std::size_t stride) {
  double* a[2] = {a_.as<double>(), a_.as<double>() + panel.tile.rows * panel.depth};
  double* b[2] = {b_.as<double>(), b_.as<double>() + panel.tile.columns * panel.depth};
  auto load = [&](Int32Part part, int place, bool with_b) {
    auto convert = [part](const std::byte* from, double* to, std::size_t count) {
      int32_part_to_double(part, reinterpret_cast<const std::int32_t*>(from), to, count);
    };
    load_a(panel, a[place], convert);
    if (with_b) load_b(panel, b[place], convert);
  };
  bool with_b = !has_b(panel);
  load(is_split_ ? Int32Part::kLow : Int32Part::kWhole, 0, with_b);
  if (is_split_) load(Int32Part::kHigh, 1, with_b);

  Product<double> product;
  product.rows = static_cast<std::int64_t>(panel.tile.rows);
  product.columns = static_cast<std::int64_t>(panel.tile.columns);
  product.depth = static_cast<std::int64_t>(panel.depth);
  product.a_stride = product.depth;
  product.b_stride = product.columns;
  product.c = tile_.as<double>();
  product.c_stride = product.columns;
  auto run = [&](int from_a, int from_b, double beta) {
    product.a = a[from_a];
    product.b = b[from_b];
    product.beta = beta;
    matmul::multiply(product);
  };
  auto accumulate = [&](Accumulate how, int shift) {
    for (std::uint64_t row = 0; row < panel.tile.rows; ++row)
      accumulate_modulo(how, product.c + row * panel.tile.columns, shift, out + row * stride,
                        panel.tile.columns);
  };
  run(0, 0, 0);
  accumulate(panel.start == 0 ? Accumulate::kSet : Accumulate::kAdd, 0);
  if (!is_split_) return;
  run(0, 1, 0);
  run(1, 0, 1);
  accumulate(Accumulate::kAdd, 16);
}

}  // namespace matmul
