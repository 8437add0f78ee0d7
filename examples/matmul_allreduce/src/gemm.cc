// SPDX-License-Identifier: Apache-2.0
#include "gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "convert.h"
#include "half.h"
#include "int32_panels.h"

namespace matmul {
namespace {

// One converted panel: 32 MiB keep a whole column of B (up to K = 4096) between tiles, and 64
// ranks' panels out of the way.
constexpr std::uint64_t kPanelBytes = std::uint64_t{32} << 20;
// Two sums of low * high stay exact in a double: 2 * depth * 2^32 <= 2^53.
constexpr std::uint64_t kMostSplitDepth = std::uint64_t{1} << 20;
constexpr std::uint64_t kExactInDouble = std::uint64_t{1} << 53;
// Below this depth an unsplit panel costs more in passes over the tile than it saves.
constexpr std::uint64_t kLeastDepth = 256;

// From this depth on, low * low is left out of fp16 products. For the inputs of verify.h, a low
// part is 2^-10.2 (root of the mean square), so that n omitted products add 13 sqrt(n) 2^-24: a
// tenth of the bound, 4 n 2^-24, at n = 1024. Shallow products would exceed the bound.
constexpr std::uint64_t kDepthOfThreeProducts = 1024;
// oneDNN packs B in blocks of at most so many rows and columns.
constexpr std::uint64_t kPackedBlock = 64;

std::uint64_t round_up(std::uint64_t number, std::uint64_t step) {
  return (number + step - 1) / step * step;
}

std::uint64_t bf16_parts(const Multiplier& by) {
  if (by.blas == Blas::kOpenBlas || by.unit == Bf16Unit::kNone) return 0;
  if (by.type == ElementType::kBf16) return 1;
  // A bf16 vector has twice the numbers of a float vector: three such products save no time.
  return by.type == ElementType::kFp16 && by.unit == Bf16Unit::kMatrix ? 2 : 0;
}

std::uint64_t panel_depth(std::uint64_t k, std::uint64_t most) {
  std::uint64_t panels = (k + most - 1) / most;
  return (k + panels - 1) / panels;
}

}  // namespace

PanelPlan::PanelPlan(const Shape& shape, const Multiplier& by, const TilePlan& tiles) {
  auto most = static_cast<std::uint64_t>(kMostBlasExtent);
  is_direct = by.type == ElementType::kFloat && shape.k <= most && shape.n <= most;
  if (is_direct) {
    depth = shape.k;
    return;
  }
  bool is_int32 = by.type == ElementType::kInt32;
  parts = bf16_parts(by);
  // int32 may need both halves of each number. The parts of a 16-bit number take up to a float.
  std::uint64_t bytes = is_int32 ? 2 * sizeof(double) : sizeof(float);
  std::uint64_t packed = round_up(tiles.tile_columns(), kPackedBlock) * sizeof(std::uint16_t);
  std::uint64_t deepest =
      std::max(tiles.tile_rows() * bytes, tiles.tile_columns() * bytes + parts * packed);
  depth = panel_depth(shape.k, std::max<std::uint64_t>(1, kPanelBytes / deepest));
  if (is_int32) depth = std::min(depth, kMostSplitDepth);
  a_bytes = tiles.tile_rows() * depth * bytes;
  b_bytes = tiles.tile_columns() * depth * bytes;
  if (parts > 0) packed_bytes = packed * round_up(depth, kPackedBlock);
  if (parts > 0 || is_int32)
    tile_bytes =
        tiles.tile_rows() * tiles.tile_columns() * (is_int32 ? sizeof(double) : kPartialBytes);
}

Gemm::Gemm(const Input& input, const TilePlan& tiles)
    : input_(input),
      plan_(input.shape, input.by, tiles),
      a_(plan_.a_bytes),
      b_(plan_.b_bytes),
      tile_(plan_.tile_bytes) {
  if (input.by.type == ElementType::kInt32) choose_split();
  if (plan_.parts > 0) choose_bf16(tiles);
}

const char* Gemm::library() const {
  if (input_.by.type == ElementType::kInt32) return "OpenBLAS";
  if (bf16_ == nullptr) return blas_name(input_.by.blas);
  return input_.by.unit == Bf16Unit::kMatrix ? "oneDNN on the matrix unit"
                                             : "oneDNN on bf16 vectors";
}

// Compiles for whole tiles and panels, and for those at the edges.
void Gemm::choose_bf16(const TilePlan& tiles) {
  const Shape& shape = input_.shape;
  std::vector<ProductShape> shapes;
  for (std::uint64_t columns : {tiles.tile_columns(), shape.n % tiles.tile_columns()})
    for (std::uint64_t depth : {plan_.depth, shape.k % plan_.depth})
      for (std::uint64_t rows : {tiles.tile_rows(), shape.m % tiles.tile_rows()})
        if (columns > 0 && depth > 0 && rows > 0) shapes.push_back({rows, columns, depth});
  bf16_ = Bf16Product::create(shapes);
  if (bf16_ == nullptr) return;
  if (bf16_->packed_bytes() > plan_.packed_bytes)
    bf16_.reset();
  else
    packed_ = Pages(plan_.parts * plan_.packed_bytes);
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
  // oneDNN's kernels that read a packed B write without gaps.
  const bool has_gaps = bf16_ != nullptr && stride != tile.columns;
  float* floats = has_gaps ? tile_.as<float>() : static_cast<float*>(out);
  for (std::uint64_t start = 0; start < input_.shape.k; start += plan_.depth) {
    Panel panel{tile, start, std::min(plan_.depth, input_.shape.k - start)};
    if (input_.by.type == ElementType::kInt32)
      multiply_int32(panel, static_cast<std::uint32_t*>(out), stride);
    else if (bf16_ != nullptr)
      multiply_bf16(panel, floats);
    else
      multiply_float(panel, floats, stride);
  }
  for (std::uint64_t row = 0; has_gaps && row < tile.rows; ++row)
    std::memcpy(static_cast<float*>(out) + row * stride, floats + row * tile.columns,
                tile.columns * sizeof(float));
}

template <typename T, typename Convert>
void Gemm::load_a(const Panel& panel, T* to, Convert&& convert) {
  std::size_t bytes = element_bytes(input_.by.type);
  const auto* from = static_cast<const std::byte*>(input_.a) +
                     (panel.tile.row * input_.shape.k + panel.start) * bytes;
  for (std::uint64_t row = 0; row < panel.tile.rows; ++row)
    convert(from + row * input_.shape.k * bytes, to + row * panel.depth, panel.depth);
}

template <typename T, typename Convert>
void Gemm::load_b(const Panel& panel, T* to, Convert&& convert) {
  std::size_t bytes = element_bytes(input_.by.type);
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
  matmul::multiply(input_.by.blas, product);
}

void Gemm::multiply_float(const Panel& panel, float* out, std::size_t stride) {
  auto convert = [type = input_.by.type](const std::byte* from, float* to, std::size_t count) {
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
  matmul::multiply(input_.by.blas, product);
}

// The low part of a number is stored `part` elements after its high part.
void Gemm::load_bf16(const std::byte* from, std::uint16_t* to, std::size_t count,
                     std::size_t part) const {
  if (input_.by.type == ElementType::kBf16)
    std::memcpy(to, from, count * sizeof(std::uint16_t));
  else
    fp16_to_bf16_pair(reinterpret_cast<const std::uint16_t*>(from), to, to + part, count);
}

const std::uint16_t* Gemm::load_bf16_a(const Panel& panel) {
  const bool has_no_gaps = panel.depth == input_.shape.k;
  if (input_.by.type == ElementType::kBf16 && has_no_gaps)
    return static_cast<const std::uint16_t*>(input_.a) + panel.tile.row * input_.shape.k;
  load_a(panel, a_.as<std::uint16_t>(),
         [&](const std::byte* from, std::uint16_t* to, std::size_t count) {
           load_bf16(from, to, count, panel.tile.rows * panel.depth);
         });
  return a_.as<std::uint16_t>();
}

void Gemm::load_bf16_b(const Panel& panel, const ProductShape& shape) {
  const std::size_t elements = panel.tile.columns * panel.depth;
  load_b(panel, b_.as<std::uint16_t>(),
         [&](const std::byte* from, std::uint16_t* to, std::size_t count) {
           load_bf16(from, to, count, elements);
         });
  for (std::uint64_t part = 0; part < plan_.parts; ++part)
    bf16_->pack(shape, b_.as<std::uint16_t>() + part * elements,
                packed_.as<std::byte>() + part * plan_.packed_bytes);
}

// The least products come first: few sums are rounded at full size.
void Gemm::multiply_bf16(const Panel& panel, float* out) {
  const ProductShape shape{panel.tile.rows, panel.tile.columns, panel.depth};
  const std::uint16_t* a = load_bf16_a(panel);
  if (!has_b(panel)) load_bf16_b(panel, shape);
  bool adds = panel.start > 0;
  auto run = [&](std::uint64_t part_a, std::uint64_t part_b) {
    bf16_->multiply({shape, a + part_a * panel.tile.rows * panel.depth,
                     packed_.as<std::byte>() + part_b * plan_.packed_bytes, out, adds});
    adds = true;
  };
  const bool is_split = plan_.parts == 2;
  if (is_split && input_.shape.k < kDepthOfThreeProducts) run(1, 1);
  if (is_split) run(1, 0);
  if (is_split) run(0, 1);
  run(0, 0);
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
