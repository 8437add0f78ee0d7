// SPDX-License-Identifier: Apache-2.0
// The members' parts of a reduction, combined in the order of members, so that the bits are the
// same whoever does it. Half types are combined as floats and rounded once. PyTorch's own kernels
// do the arithmetic, in pieces that stay in the cache.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memspan::tensors {

enum class Reduction { kSum, kAverage, kMin, kMax, kProduct };

inline Reduction reduction_of(const std::string& name, at::ScalarType type) {
  TORCH_CHECK_VALUE(!at::isComplexType(type) || (name != "min" && name != "max"), "reduce_op is ",
                    name, ", which complex numbers do not have");
  TORCH_CHECK_VALUE(!at::isIntegralType(type, true) || name != "avg",
                    "reduce_op is avg, which is of ",
                    "floating-point numbers, and the tensor is of ", type);
  if (name == "sum") return Reduction::kSum;
  if (name == "avg") return Reduction::kAverage;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  TORCH_CHECK_VALUE(name == "product", "reduce_op is ", name,
                    ", allowed are sum, avg, min, max and product");
  return Reduction::kProduct;
}

inline void combine_two(at::Tensor& result, const at::Tensor& one, const at::Tensor& other,
                        Reduction reduction) {
  switch (reduction) {
    case Reduction::kMin:
      at::minimum_out(result, one, other);
      break;
    case Reduction::kMax:
      at::maximum_out(result, one, other);
      break;
    case Reduction::kProduct:
      at::mul_out(result, one, other);
      break;
    default:
      at::add_out(result, one, other);
  }
}

// All of one shape; `scratch` is what is computed in, and may be the first result.
inline void combine_piece(const std::vector<at::Tensor>& results,
                          const std::vector<at::Tensor>& parts, at::Tensor scratch,
                          Reduction reduction) {
  std::size_t done = 2;
  if (parts.size() == 1 || scratch.scalar_type() != parts[0].scalar_type()) {
    scratch.copy_(parts[0]);
    done = 1;
  } else {
    combine_two(scratch, parts[0], parts[1], reduction);
  }
  for (; done < parts.size(); ++done) combine_two(scratch, scratch, parts[done], reduction);
  if (reduction == Reduction::kAverage) scratch.div_(static_cast<std::int64_t>(parts.size()));
  for (const at::Tensor& result : results)
    if (result.data_ptr() != scratch.data_ptr()) result.copy_(scratch);
}

// What `parts` make, to each of `results`, all of one shape and type. A result may be a part, and
// overlaps none otherwise.
inline void combine(const std::vector<at::Tensor>& results, const std::vector<at::Tensor>& parts,
                    Reduction reduction) {
  constexpr std::int64_t kPiece = std::int64_t{64} << 10;  // elements for each thread
  const std::int64_t count = parts[0].numel();
  if (count == 0) return;
  // PyTorch adds two halves as floats, too, and rounds once.
  const bool is_one_step = parts.size() <= 2 && reduction != Reduction::kAverage;
  const at::ScalarType type = parts[0].scalar_type();
  const auto options =
      parts[0].options().dtype(at::isReducedFloatingType(type) && !is_one_step ? at::kFloat : type);
  bool is_flat = true;
  for (const auto* tensors : {&results, &parts})
    for (const at::Tensor& tensor : *tensors) is_flat = is_flat && tensor.is_contiguous();
  const std::int64_t piece = std::min(count, kPiece * at::get_num_threads());
  if (!is_flat || (is_one_step && (results.size() == 1 || piece == count))) {
    combine_piece(results, parts, is_one_step ? results[0] : at::empty(parts[0].sizes(), options),
                  reduction);
    return;
  }
  const at::Tensor scratch = at::empty({piece}, options);
  for (std::int64_t begin = 0; begin < count; begin += piece) {
    const std::int64_t end = std::min(begin + piece, count);
    const auto pieces_of = [&](const std::vector<at::Tensor>& tensors) {
      std::vector<at::Tensor> pieces;
      for (const at::Tensor& tensor : tensors)
        pieces.push_back(tensor.view({count}).slice(0, begin, end));
      return pieces;
    };
    combine_piece(pieces_of(results), pieces_of(parts), scratch.slice(0, 0, end - begin),
                  reduction);
  }
}

}  // namespace memspan::tensors
