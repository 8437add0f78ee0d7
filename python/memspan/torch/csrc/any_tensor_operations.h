// SPDX-License-Identifier: Apache-2.0
// The operations of torch.ops.symm_mem on any tensors. A rank copies its part into its slot of the
// group's workspace, and the others read it there as soon as it is announced: nothing is gathered
// before it is multiplied. Each operation is collective. When ranks' calls differ, or one's
// arguments are wrong, all get an exception.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/movedim.h>
#include <torch/library.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "groups.h"
#include "reduce_local.h"
#include "workspace.h"

namespace memspan::tensors {

// NOLINTBEGIN(performance-unnecessary-value-param): because PyTorch declares these operations with
// texts by value

using Sizes = std::vector<std::int64_t>;

// A part of a member's slot in this call, from a byte on.
inline at::Tensor slot_of(const Workspace& workspace, int member, c10::IntArrayRef sizes,
                          const at::TensorOptions& options, std::size_t offset) {
  return at::from_blob(workspace.slot(member) + offset, sizes, options);
}

template <typename... Parts>
std::string text_of(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

inline std::int64_t dimension_of(std::int64_t number, const at::Tensor& tensor, const char* name) {
  const std::int64_t count = tensor.dim();
  TORCH_CHECK_VALUE(number >= -count && number < count, name, " is ", number, ", allowed are ",
                    -count, " to ", count - 1);
  return number < 0 ? number + count : number;
}

inline void check_matrices(const at::Tensor& a) {
  TORCH_CHECK_VALUE(a.dim() >= 2, "A has ", a.dim(), " dimensions, allowed are 2 and more");
}

inline void check_factor(const at::Tensor& b, std::int64_t rows, at::ScalarType type,
                         const std::string& name) {
  TORCH_CHECK_VALUE(b.dim() == 2 && b.size(0) == rows && b.scalar_type() == type, name,
                    " has the shape ", b.sizes(), " of ", b.scalar_type(), ", allowed is [", rows,
                    ", any] of ", type);
}

inline void check_sum_or_average(const std::string& reduce_op, at::ScalarType type) {
  TORCH_CHECK_VALUE(reduce_op == "sum" || reduce_op == "avg", "reduce_op is \"", reduce_op,
                    "\", allowed are sum and avg");
  kind_of(type, reduce_op);
}

// Calls prepare(), then take(rank, that rank's part) for every rank: for this one first, for the
// others as their parts are announced.
template <typename Prepare, typename Take>
void pass_round(Workspace& workspace, const std::string& what, const at::Tensor& part,
                Prepare prepare, Take take) {
  const auto options = part.options();
  workspace.begin(text_of(what, " ", part.scalar_type(), " ", part.sizes()), part.nbytes());
  workspace.guarded([&] {
    prepare();
    const at::Tensor mine = slot_of(workspace, workspace.rank(), part.sizes(), options, 0);
    mine.copy_(part);
    workspace.publish_all();
    take(workspace.rank(), mine);
    for (int others = workspace.size() - 1; others > 0; --others) {
      const int peer = workspace.next();
      take(peer, slot_of(workspace, peer, part.sizes(), options, 0));
      workspace.release(peer);
    }
    workspace.end();
  });
}

// ---- gather and multiply

using Gathered = std::tuple<std::optional<at::Tensor>, std::vector<at::Tensor>>;

// Each rank's rows are multiplied where they lie.
inline Gathered multiply_rows(Workspace& workspace, const std::string& what, const at::Tensor& a,
                              at::TensorList bs, std::int64_t dimension, bool return_A) {
  const at::Tensor moved = a.movedim(dimension, 0);
  Sizes shape = moved.sizes().vec();  // of the result, before `dimension` goes back to its place
  const std::int64_t k = shape.back();
  std::int64_t count = 1;
  for (std::size_t index = 0; index + 1 < shape.size(); ++index) count *= shape[index];
  const std::int64_t all = count * workspace.size();
  shape.front() *= workspace.size();
  at::Tensor whole;
  std::vector<at::Tensor> products;
  products.reserve(bs.size());
  pass_round(
      workspace, what, moved,
      [&] {
        if (return_A) whole = a.new_empty({all, k});
        for (const at::Tensor& b : bs) products.push_back(a.new_empty({all, b.size(1)}));
      },
      [&](int rank, const at::Tensor& part) {
        const at::Tensor rows = part.view({count, k});
        for (std::size_t index = 0; index < bs.size(); ++index) {
          at::Tensor product = products[index].narrow(0, rank * count, count);
          at::mm_out(product, rows, bs[index]);
        }
        if (return_A) whole.narrow(0, rank * count, count).copy_(rows);
      });
  const auto as_a = [&](const at::Tensor& rows) {
    shape.back() = rows.size(1);
    return rows.view(shape).movedim(0, dimension);
  };
  for (at::Tensor& product : products) product = as_a(product);
  return {return_A ? std::optional(as_a(whole)) : std::nullopt, std::move(products)};
}

// Each product needs all ranks' columns, and is rounded once.
inline Gathered multiply_columns(Workspace& workspace, const std::string& what, const at::Tensor& a,
                                 at::TensorList bs, bool return_A) {
  const std::int64_t k = a.size(-1);
  at::Tensor whole;
  pass_round(
      workspace, what, a,
      [&] {
        Sizes shape = a.sizes().vec();
        shape.back() *= workspace.size();
        whole = a.new_empty(shape);
      },
      [&](int rank, const at::Tensor& part) { whole.narrow(-1, rank * k, k).copy_(part); });
  std::vector<at::Tensor> products;
  products.reserve(bs.size());
  for (const at::Tensor& b : bs) products.push_back(at::matmul(whole, b));
  return {return_A ? std::optional(whole) : std::nullopt, std::move(products)};
}

// All ranks' A one after the other along gather_dim, and that multiplied by each of Bs. The ranks'
// A have one shape and type, their Bs may differ.
inline Gathered fused_all_gather_matmul(const at::Tensor& A, at::TensorList Bs,
                                        std::int64_t gather_dim, std::string group_name,
                                        bool return_A) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  const std::int64_t dimension = workspace->checked([&] {
    check_matrices(A);
    const std::int64_t checked = dimension_of(gather_dim, A, "gather_dim");
    const std::int64_t rows = A.size(-1) * (checked == A.dim() - 1 ? workspace->size() : 1);
    for (std::size_t index = 0; index < Bs.size(); ++index)
      check_factor(Bs[index], rows, A.scalar_type(), "Bs[" + std::to_string(index) + "]");
    return checked;
  });
  const std::string what = text_of("fused_all_gather_matmul along ", dimension, ",");
  if (dimension == A.dim() - 1) return multiply_columns(*workspace, what, A, Bs, return_A);
  return multiply_rows(*workspace, what, A, Bs, dimension, return_A);
}

// ---- multiply and reduce

// This rank's part, along scatter_dim, of the sum or average of all ranks' A @ B, which have one
// shape and type.
inline at::Tensor fused_matmul_reduce_scatter(const at::Tensor& A, const at::Tensor& B,
                                              std::string reduce_op, std::int64_t scatter_dim,
                                              std::string group_name) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  const int size = workspace->size();
  const int rank = workspace->rank();
  const std::int64_t dimension = workspace->checked([&] {
    check_matrices(A);
    check_factor(B, A.size(-1), A.scalar_type(), "B");
    check_sum_or_average(reduce_op, A.scalar_type());
    const std::int64_t checked = dimension_of(scatter_dim, A, "scatter_dim");
    const std::int64_t extent = checked == A.dim() - 1 ? B.size(1) : A.size(checked);
    TORCH_CHECK_VALUE(extent % size == 0, "the product has ", extent, " elements along ", checked,
                      ", allowed are multiples of ", size);
    return checked;
  });
  const bool is_last = dimension == A.dim() - 1;
  const at::Tensor moved = is_last ? A : A.movedim(dimension, 0);
  Sizes shape = moved.sizes().vec();  // of the result, before `dimension` goes back to its place
  shape.back() = B.size(1);
  (is_last ? shape.back() : shape.front()) /= size;
  const std::int64_t columns = shape.back();
  std::int64_t rows = 1;
  for (std::size_t index = 0; index + 1 < shape.size(); ++index) rows *= shape[index];
  constexpr std::size_t kLine = 64;
  const std::size_t bytes = rows * columns * A.element_size();
  const std::size_t step = (bytes + kLine - 1) / kLine * kLine;  // a part for each rank

  at::Tensor result;
  workspace->begin(text_of("fused_matmul_reduce_scatter ", reduce_op, " along ", dimension, ", ",
                           A.scalar_type(), " ", c10::IntArrayRef(shape)),
                   size * step);
  workspace->guarded([&] {
    result = A.new_empty(shape);
    const auto part = [&](int of, int to) {
      return slot_of(*workspace, of, {rows, columns}, A.options(), to * step);
    };
    // What is a rank's, one's own last.
    for (int ahead = 1; ahead <= size; ++ahead) {
      const int peer = (rank + ahead) % size;
      const std::int64_t each = shape.front();
      const at::Tensor left = is_last ? moved : moved.narrow(0, peer * each, each);
      at::Tensor product = part(rank, peer);
      at::mm_out(product, left.flatten(0, -2), is_last ? B.narrow(1, peer * columns, columns) : B);
      if (peer != rank) workspace->publish(peer);
    }
    workspace->await_all();
    std::vector<at::Tensor> parts;
    parts.reserve(size);
    for (int of = 0; of < size; ++of) parts.push_back(part(of, rank));
    reduce_local({result.view({rows, columns})}, parts, kind_of(A.scalar_type(), reduce_op));
    workspace->release_all();
    workspace->end();
  });
  return is_last ? result : result.movedim(0, dimension).contiguous();
}

// ---- without products

// All ranks' tensors one after the other along the first dimension.
inline at::Tensor low_contention_all_gather(const at::Tensor& tensor, std::string group_name) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  workspace->checked([&] { TORCH_CHECK_VALUE(tensor.dim() > 0, "the tensor has no dimension"); });
  const std::int64_t count = tensor.size(0);
  at::Tensor result;
  pass_round(
      *workspace, "_low_contention_all_gather", tensor,
      [&] {
        Sizes shape = tensor.sizes().vec();
        shape.front() *= workspace->size();
        result = tensor.new_empty(shape);
      },
      [&](int rank, const at::Tensor& part) { result.narrow(0, rank * count, count).copy_(part); });
  return result;
}

// This rank's part, along the first dimension, of the sum or average of all ranks' tensors.
inline at::Tensor low_contention_reduce_scatter(const at::Tensor& tensor, std::string reduce_op,
                                                std::string group_name) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  const int size = workspace->size();
  const int rank = workspace->rank();
  workspace->checked([&] {
    check_sum_or_average(reduce_op, tensor.scalar_type());
    TORCH_CHECK_VALUE(tensor.dim() > 0 && tensor.size(0) % size == 0, "the tensor has the shape ",
                      tensor.sizes(), ", allowed are multiples of ", size, " first");
  });
  at::Tensor result;
  workspace->begin(text_of("_low_contention_reduce_scatter ", reduce_op, " ", tensor.scalar_type(),
                           " ", tensor.sizes()),
                   tensor.nbytes());
  workspace->guarded([&] {
    Sizes shape = tensor.sizes().vec();
    shape.front() /= size;
    result = tensor.new_empty(shape);
    slot_of(*workspace, rank, tensor.sizes(), tensor.options(), 0).copy_(tensor);
    workspace->publish_all();
    workspace->await_all();
    std::vector<at::Tensor> parts;
    parts.reserve(size);
    for (int of = 0; of < size; ++of)
      parts.push_back(slot_of(*workspace, of, shape, tensor.options(), rank * result.nbytes()));
    reduce_local({result}, parts, kind_of(tensor.scalar_type(), reduce_op));
    workspace->release_all();
    workspace->end();
  });
  return result;
}

inline void add_any_tensor_operations(torch::Library& library) {
  library.impl("fused_all_gather_matmul", fused_all_gather_matmul);
  library.impl("fused_matmul_reduce_scatter", fused_matmul_reduce_scatter);
  library.impl("_low_contention_all_gather", low_contention_all_gather);
  library.impl("_low_contention_reduce_scatter", low_contention_reduce_scatter);
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace memspan::tensors
