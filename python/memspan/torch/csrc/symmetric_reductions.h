// SPDX-License-Identifier: Apache-2.0
// The reductions of torch.ops.symm_mem on symmetric tensors. Each is collective, with the same
// shapes, types and places in the allocation on all ranks, or all get an exception before anything
// moves. On return nobody uses this rank's tensors any more.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "groups.h"
#include "peer_tensor.h"
#include "reduce_local.h"
#include "workspace.h"

namespace memspan::tensors {

// NOLINTBEGIN(performance-unnecessary-value-param): because PyTorch declares these operations with
// texts by value

inline at::Tensor& one_shot(const char* name, const at::Tensor& input, const at::Tensor* local,
                            const std::string& reduce_op, const std::string& group_name,
                            at::Tensor& out) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  const at::Tensor& given = local == nullptr ? input : *local;
  ReductionKind kind{};
  const PeerTensor symmetric = workspace->checked([&] {
    kind = kind_of(input.scalar_type(), reduce_op);
    check_contiguous(out, "out");
    check_like(out, "out", given, local == nullptr ? "input" : "local_input");
    if (local != nullptr) {
      check_contiguous(*local, "local_input");
      TORCH_CHECK_VALUE(
          local->scalar_type() == input.scalar_type() && local->numel() <= input.numel(),
          "local_input has ", local->numel(), " elements of ", local->scalar_type(),
          ", symm_buffer ", input.numel(), " of ", input.scalar_type());
    }
    return PeerTensor::contiguous(input, local == nullptr ? "input" : "symm_buffer", group_name);
  });
  const std::int64_t count = given.numel();
  if (local != nullptr) symmetric.part(workspace->rank(), 0, count).copy_(local->view({count}));
  together(*workspace,
           std::string(name) + " " + reduce_op + " " + symmetric.about() + ", " +
               std::to_string(count) + " elements",
           [&] { reduce_local({out.view({count})}, symmetric.parts(0, count), kind); });
  return out;
}

inline at::Tensor one_shot_all_reduce_out(const at::Tensor& input, std::string reduce_op,
                                          std::string group_name, at::Tensor out) {
  return one_shot("one_shot_all_reduce", input, nullptr, reduce_op, group_name, out);
}

inline at::Tensor one_shot_all_reduce(const at::Tensor& input, std::string reduce_op,
                                      std::string group_name) {
  at::Tensor out = at::empty_like(input, at::MemoryFormat::Contiguous);
  return one_shot("one_shot_all_reduce", input, nullptr, reduce_op, group_name, out);
}

inline at::Tensor one_shot_all_reduce_copy_out(const at::Tensor& symm_buffer,
                                               const at::Tensor& local_input, std::string reduce_op,
                                               std::string group_name, at::Tensor out) {
  return one_shot("one_shot_all_reduce_copy", symm_buffer, &local_input, reduce_op, group_name,
                  out);
}

inline at::Tensor one_shot_all_reduce_copy(const at::Tensor& symm_buffer,
                                           const at::Tensor& local_input, std::string reduce_op,
                                           std::string group_name) {
  at::Tensor out = at::empty_like(local_input, at::MemoryFormat::Contiguous);
  return one_shot("one_shot_all_reduce_copy", symm_buffer, &local_input, reduce_op, group_name,
                  out);
}

// The elements that a member combines, [begin, end): a `size`th, in whole cache lines.
struct Share {
  Share(std::int64_t count, int size, int member) {
    constexpr std::int64_t kLine = 64;  // elements, at least as many bytes
    const std::int64_t each = (count + size * kLine - 1) / (size * kLine) * kLine;
    begin = std::min(count, each * member);
    end = std::min(count, begin + each);
  }
  std::int64_t begin;
  std::int64_t end;
};

inline at::Tensor two_shot_all_reduce_(at::Tensor input, std::string reduce_op,
                                       std::string group_name) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  ReductionKind kind{};
  const PeerTensor symmetric = workspace->checked([&] {
    kind = kind_of(input.scalar_type(), reduce_op);
    return PeerTensor::contiguous(input, "input", group_name);
  });
  const Share share(input.numel(), workspace->size(), workspace->rank());
  together(*workspace, "two_shot_all_reduce_ " + reduce_op + " " + symmetric.about(), [&] {
    // Nobody else reads or writes this share, on any member.
    const std::vector<at::Tensor> parts = symmetric.parts(share.begin, share.end - share.begin);
    reduce_local(parts, parts, kind);
  });
  return input;
}

// Leaves every rank's share combined in its input.
inline at::Tensor two_shot_all_reduce_out(at::Tensor input, std::string reduce_op,
                                          std::string group_name, at::Tensor output) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  const int size = workspace->size();
  const int rank = workspace->rank();
  ReductionKind kind{};
  const PeerTensor symmetric = workspace->checked([&] {
    kind = kind_of(input.scalar_type(), reduce_op);
    check_contiguous(output, "output");
    check_like(output, "output", input, "input");
    return PeerTensor::contiguous(input, "input", group_name);
  });
  const std::string call = "two_shot_all_reduce_out " + reduce_op + " " + symmetric.about();
  const std::int64_t count = input.numel();
  const Share mine(count, size, rank);
  together(*workspace, call, [&] {
    const std::vector<at::Tensor> parts = symmetric.parts(mine.begin, mine.end - mine.begin);
    reduce_local({parts[rank]}, parts, kind);
  });
  together(*workspace, call + " gather", [&] {
    for (int step = 0; step < size; ++step) {
      const int member = (rank + step) % size;
      const Share share(count, size, member);
      output.view({count})
          .slice(0, share.begin, share.end)
          .copy_(symmetric.part(member, share.begin, share.end - share.begin));
    }
  });
  return output;
}

inline at::Tensor reduce_scatter_out(at::Tensor input, std::string group_name, bool split_last_dim,
                                     at::Tensor output) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  const int size = workspace->size();
  ReductionKind kind{};
  const PeerTensor symmetric = workspace->checked([&] {
    kind = kind_of(input.scalar_type(), "sum");
    check_contiguous(output, "output");
    TORCH_CHECK_VALUE(output.scalar_type() == input.scalar_type(), "output is of ",
                      output.scalar_type(), ", input of ", input.scalar_type());
    TORCH_CHECK_VALUE(split_last_dim ? input.dim() > 0 : input.dim() == 1, "input has ",
                      input.dim(), " dimensions, allowed ",
                      split_last_dim ? "are 1 and more" : "is 1");
    TORCH_CHECK_VALUE(input.size(-1) % size == 0, "the last dimension of input has ",
                      input.size(-1), " elements, allowed are multiples of ", size);
    std::vector<std::int64_t> sizes = input.sizes().vec();
    sizes.back() /= size;
    TORCH_CHECK_VALUE(output.sizes() == c10::IntArrayRef(sizes), "output has the shape ",
                      output.sizes(), ", allowed is ", c10::IntArrayRef(sizes));
    return PeerTensor::contiguous(input, "input", group_name);
  });
  const std::int64_t width = input.size(-1);
  const std::int64_t rows = width == 0 ? 0 : input.numel() / width;
  const std::int64_t begin = width / size * workspace->rank();
  together(*workspace,
           "reduce_scatter_out " + symmetric.about() + (split_last_dim ? " by columns" : ""), [&] {
             std::vector<at::Tensor> parts;
             parts.reserve(workspace->size());
             for (const at::Tensor& whole : symmetric.parts(0, input.numel()))
               parts.push_back(whole.view({rows, width}).slice(1, begin, begin + width / size));
             reduce_local({output.view({rows, width / size})}, parts, kind);
           });
  return output;
}

// Rows or columns [begin, end) of a tensor, and the rank whose they are.
struct SharedOut {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t rank;
};

inline std::vector<SharedOut> share_out(std::int64_t extent, int size,
                                        std::optional<std::vector<std::int64_t>> offsets,
                                        const std::optional<std::vector<std::int64_t>>& ranks) {
  if (!offsets.has_value()) {
    TORCH_CHECK_VALUE(extent % size == 0, "input has ", extent,
                      " elements along dim, allowed are multiples of ", size);
    offsets.emplace();
    for (int block = 1; block <= size; ++block) offsets->push_back(extent / size * block);
  }
  TORCH_CHECK_VALUE(!ranks.has_value() || ranks->size() == offsets->size(), "there are ",
                    offsets->size(), " offsets, and ", ranks ? ranks->size() : 0, " dst_ranks");
  std::vector<SharedOut> blocks;
  std::int64_t begin = 0;
  for (const std::int64_t end : *offsets) {
    const auto rank = ranks ? (*ranks)[blocks.size()] : std::ssize(blocks) % size;
    TORCH_CHECK_VALUE(rank >= 0 && rank < size, "dst_ranks is ", *ranks, ", allowed are 0 to ",
                      size - 1);
    TORCH_CHECK_VALUE(begin <= end && end <= extent, "offsets is ", *offsets,
                      ", which do not rise to ", extent, " at most");
    blocks.push_back({begin, end, rank});
    begin = end;
  }
  return blocks;
}

// torch.distributed._symmetric_memory.reduce_scatter_offset().
inline void reduce_scatter_offset(const at::Tensor& input, const std::vector<at::Tensor>& out,
                                  const std::string& group_name, std::int64_t dim,
                                  std::optional<std::vector<std::int64_t>> offsets,
                                  const std::optional<std::vector<std::int64_t>>& dst_ranks,
                                  const std::string& red_op) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  ReductionKind kind{};
  std::vector<SharedOut> blocks;
  const PeerTensor symmetric = workspace->checked([&] {
    TORCH_CHECK_VALUE(input.dim() == 2 && (dim == 0 || dim == 1), "input has ", input.dim(),
                      " dimensions and dim is ", dim, ", allowed are 2, and 0 or 1");
    kind = kind_of(input.scalar_type(), red_op);
    blocks = share_out(input.size(dim), workspace->size(), std::move(offsets), dst_ranks);
    std::size_t owned = 0;
    for (const SharedOut& block : blocks) {
      if (block.rank != workspace->rank()) continue;
      TORCH_CHECK_VALUE(owned < out.size(), "out has ", out.size(),
                        " tensors, and this rank has more blocks");
      check_like(out[owned++], "out", input.narrow(dim, block.begin, block.end - block.begin),
                 "its block");
    }
    TORCH_CHECK_VALUE(owned == out.size(), "out has ", out.size(), " tensors, and this rank has ",
                      owned, " blocks");
    return PeerTensor(input, "input", group_name);
  });
  std::ostringstream call;
  call << "reduce_scatter_offset " << red_op << " " << symmetric.about() << " " << input.strides()
       << " along " << dim;
  for (const SharedOut& block : blocks) call << ", to " << block.end << " for " << block.rank;
  together(*workspace, call.str(), [&] {
    std::size_t done = 0;
    for (const SharedOut& block : blocks) {
      if (block.rank != workspace->rank()) continue;
      std::vector<at::Tensor> parts;
      parts.reserve(workspace->size());
      for (int member = 0; member < workspace->size(); ++member)
        parts.push_back(symmetric.whole(member).narrow(dim, block.begin, block.end - block.begin));
      reduce_local({out[done++]}, parts, kind);
    }
  });
}

inline void add_symmetric_reductions(torch::Library& library) {
  library.impl("one_shot_all_reduce", one_shot_all_reduce);
  library.impl("one_shot_all_reduce_out", one_shot_all_reduce_out);
  library.impl("one_shot_all_reduce_copy", one_shot_all_reduce_copy);
  library.impl("one_shot_all_reduce_copy_out", one_shot_all_reduce_copy_out);
  library.impl("two_shot_all_reduce_", two_shot_all_reduce_);
  library.impl("two_shot_all_reduce_out", two_shot_all_reduce_out);
  library.impl("reduce_scatter_out", reduce_scatter_out);
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace memspan::tensors
