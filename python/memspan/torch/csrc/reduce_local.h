// SPDX-License-Identifier: Apache-2.0
// Tensors of this process combined by memspan_reduce_local(), which gives the bits of the group's
// reductions: in the order of members, half types as floats that are rounded once.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <memspan/memspan.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "reduction_kinds.h"

namespace memspan::tensors {

// Arrays of one length, by address.
struct Arrays {
  std::vector<std::byte*> results;
  std::vector<const void*> parts;
  std::size_t item;  // bytes of an element
};

// Elements [begin, end). Every piece of the first result goes to the others while it is in the
// cache.
inline void reduce_range(const Arrays& arrays, std::size_t begin, std::size_t end,
                         ReductionKind kind) {
  constexpr std::size_t kPieceBytes = std::size_t{128} << 10;
  const std::size_t piece = arrays.results.size() == 1 ? end - begin : kPieceBytes / arrays.item;
  std::vector<const void*> parts(arrays.parts.size());
  for (std::size_t at = begin; at < end; at += piece) {
    const std::size_t now = std::min(piece, end - at);
    const std::size_t offset = at * arrays.item;
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i] = static_cast<const std::byte*>(arrays.parts[i]) + offset;
    std::byte* const first = arrays.results[0] + offset;
    const std::int32_t code = memspan_reduce_local(
        first, parts.data(), static_cast<int>(parts.size()), now, kind.type, kind.op);
    TORCH_CHECK_VALUE(code == SMEM_OK, memspan_last_error());
    for (std::size_t i = 1; i < arrays.results.size(); ++i)
      std::memcpy(arrays.results[i] + offset, first, now * arrays.item);
  }
}

// Of contiguous tensors, by as many threads as PyTorch has here.
inline void reduce_contiguous(const std::vector<at::Tensor>& results,
                              const std::vector<at::Tensor>& parts, ReductionKind kind) {
  constexpr std::int64_t kGrain = std::int64_t{32} << 10;  // elements that are worth a thread
  Arrays arrays{{}, {}, static_cast<std::size_t>(parts[0].itemsize())};
  for (const at::Tensor& result : results)
    arrays.results.push_back(static_cast<std::byte*>(result.mutable_data_ptr()));
  for (const at::Tensor& part : parts) arrays.parts.push_back(part.const_data_ptr());
  at::parallel_for(0, parts[0].numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    reduce_range(arrays, static_cast<std::size_t>(begin), static_cast<std::size_t>(end), kind);
  });
}

inline bool are_contiguous(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return tensor.is_contiguous(); });
}
// Matrices whose rows are contiguous.
inline bool have_rows(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return tensor.dim() == 2 && tensor.stride(1) == 1;
  });
}

// Combines `parts` into each of `results`, all of one shape and type. A result may be a part, and
// overlaps none otherwise.
inline void reduce_local(const std::vector<at::Tensor>& results,
                         const std::vector<at::Tensor>& parts, ReductionKind kind) {
  if (parts[0].numel() == 0) return;
  if (are_contiguous(results) && are_contiguous(parts))
    return reduce_contiguous(results, parts, kind);
  if (have_rows(results) && have_rows(parts)) {
    const auto row_of = [](const std::vector<at::Tensor>& tensors, std::int64_t row) {
      std::vector<at::Tensor> rows;
      rows.reserve(tensors.size());
      for (const at::Tensor& tensor : tensors) rows.push_back(tensor.select(0, row));
      return rows;
    };
    for (std::int64_t row = 0; row < parts[0].size(0); ++row)
      reduce_contiguous(row_of(results, row), row_of(parts, row), kind);
    return;
  }
  std::vector<at::Tensor> flat;
  flat.reserve(parts.size());
  for (const at::Tensor& part : parts) flat.push_back(part.contiguous());
  const at::Tensor sum = at::empty(parts[0].sizes(), parts[0].options());
  reduce_contiguous({sum}, flat, kind);
  for (const at::Tensor& result : results) result.copy_(sum);
}

}  // namespace memspan::tensors
