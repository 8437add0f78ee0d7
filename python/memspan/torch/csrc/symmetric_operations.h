// SPDX-License-Identifier: Apache-2.0
// The operations of torch.ops.symm_mem on tensors that are symmetric themselves: nothing is copied
// that can be read where it lies. Each is collective, with the same shapes, types and places in the
// allocation on all ranks, or all get an exception before anything moves. On return nobody uses
// this rank's tensors any more.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "combine.h"
#include "groups.h"
#include "peer_memory.h"
#include "workspace.h"

namespace memspan::tensors {

inline void check_contiguous(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK_VALUE(tensor.is_contiguous(), name, " is not contiguous");
}

inline void check_like(const at::Tensor& tensor, const char* name, const at::Tensor& other,
                       const char* other_name) {
  TORCH_CHECK_VALUE(tensor.sizes() == other.sizes(), name, " has the shape ", tensor.sizes(), ", ",
                    other_name, " ", other.sizes());
  TORCH_CHECK_VALUE(tensor.scalar_type() == other.scalar_type(), name, " is of ",
                    tensor.scalar_type(), ", ", other_name, " of ", other.scalar_type());
}

// A tensor of symmetric memory on all members.
class PeerTensor {
 public:
  // Collective the first time for a memory and a group.
  PeerTensor(const at::Tensor& tensor, const char* name, const std::string& group)
      : tensor_(tensor) {
    TORCH_CHECK_VALUE(
        symm::is_symm_mem_tensor(tensor), name,
        " is no symmetric memory; torch.distributed._symmetric_memory.empty() makes it");
    memory_ = c10::static_intrusive_pointer_cast<PeerMemory>(symm::rendezvous(tensor, group));
    const std::size_t bytes =
        at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
    TORCH_CHECK_VALUE(offset() + bytes <= memory_->get_buffer_size(), name,
                      " goes beyond the end of its memory");
  }
  static PeerTensor contiguous(const at::Tensor& tensor, const char* name,
                               const std::string& group) {
    check_contiguous(tensor, name);
    return {tensor, name, group};
  }

  int size() const { return memory_->get_world_size(); }
  std::byte* address(int member) const { return memory_->at(member, begin()); }
  // The member's, which keeps the memory.
  at::Tensor whole(int member) const {
    return at::from_blob(
        address(member), tensor_.sizes(), tensor_.strides(), [memory = memory_](void*) {},
        tensor_.options());
  }
  // `count` elements of the member's, from element `first`, of a contiguous tensor.
  at::Tensor part(int member, std::int64_t first, std::int64_t count) const {
    return at::from_blob(address(member) + first * tensor_.itemsize(), {count}, tensor_.options());
  }
  std::vector<at::Tensor> parts(std::int64_t first, std::int64_t count) const {
    std::vector<at::Tensor> all;
    for (int member = 0; member < size(); ++member) all.push_back(part(member, first, count));
    return all;
  }
  std::string about() const {
    std::ostringstream text;
    text << tensor_.scalar_type() << " " << tensor_.sizes() << " at byte " << offset();
    return text.str();
  }

 private:
  // Also of no elements, for which PyTorch has no address.
  const std::byte* begin() const {
    return static_cast<const std::byte*>(tensor_.storage().data()) +
           tensor_.storage_offset() * tensor_.itemsize();
  }
  std::size_t offset() const {
    return begin() - static_cast<std::byte*>(memory_->get_buffer_ptrs()[memory_->get_rank()]);
  }

  const at::Tensor tensor_;
  c10::intrusive_ptr<PeerMemory> memory_;
};

// Begins `call`, waits until everybody is in it, and runs `function` before anybody leaves it.
template <typename Function>
void together(Workspace& workspace, const std::string& call, Function function) {
  workspace.begin(call, 0);
  workspace.guarded([&] {
    workspace.publish_all();
    workspace.await_all();
    function();
    workspace.release_all();
    workspace.end_together();
  });
}

inline at::Tensor& one_shot(const char* name, const at::Tensor& input, const at::Tensor* local,
                            const std::string& reduce_op, const std::string& group_name,
                            at::Tensor& out) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  const at::Tensor& given = local == nullptr ? input : *local;
  Reduction reduction{};
  const PeerTensor symmetric = workspace->checked([&] {
    reduction = reduction_of(reduce_op, input.scalar_type());
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
           [&] { combine({out.view({count})}, symmetric.parts(0, count), reduction); });
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
  Reduction reduction{};
  const PeerTensor symmetric = workspace->checked([&] {
    reduction = reduction_of(reduce_op, input.scalar_type());
    return PeerTensor::contiguous(input, "input", group_name);
  });
  const Share share(input.numel(), workspace->size(), workspace->rank());
  together(*workspace, "two_shot_all_reduce_ " + reduce_op + " " + symmetric.about(), [&] {
    // Nobody else reads or writes this share, on any member.
    const std::vector<at::Tensor> parts = symmetric.parts(share.begin, share.end - share.begin);
    combine(parts, parts, reduction);
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
  Reduction reduction{};
  const PeerTensor symmetric = workspace->checked([&] {
    reduction = reduction_of(reduce_op, input.scalar_type());
    check_contiguous(output, "output");
    check_like(output, "output", input, "input");
    return PeerTensor::contiguous(input, "input", group_name);
  });
  const std::string call = "two_shot_all_reduce_out " + reduce_op + " " + symmetric.about();
  const std::int64_t count = input.numel();
  const Share mine(count, size, rank);
  together(*workspace, call, [&] {
    const std::vector<at::Tensor> parts = symmetric.parts(mine.begin, mine.end - mine.begin);
    combine({parts[rank]}, parts, reduction);
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
  const PeerTensor symmetric = workspace->checked([&] {
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
             for (const at::Tensor& whole : symmetric.parts(0, input.numel()))
               parts.push_back(whole.view({rows, width}).slice(1, begin, begin + width / size));
             combine({output.view({rows, width / size})}, parts, Reduction::kSum);
           });
  return output;
}

// in_splits[r]: rows of `input`, in the order of ranks, for rank r. out_splits_offsets gets how
// many rows came from each rank, and where in `out` they begin.
inline void all_to_all_vdev(at::Tensor& input, at::Tensor& out, at::Tensor& in_splits,
                            at::Tensor& out_splits_offsets, std::string group_name) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::shared_ptr<Workspace> workspace = Groups::instance().workspace(group_name);
  const int size = workspace->size();
  const int rank = workspace->rank();
  const auto [rows, splits] = workspace->checked([&] {
    for (const auto& [tensor, name] :
         {std::pair{&out, "out"}, {&out_splits_offsets, "out_splits_offsets"}})
      check_contiguous(*tensor, name);
    TORCH_CHECK_VALUE(input.dim() > 0 && out.dim() > 0 &&
                          input.scalar_type() == out.scalar_type() &&
                          input.sizes().slice(1) == out.sizes().slice(1),
                      "input has the shape ", input.sizes(), " of ", input.scalar_type(), ", out ",
                      out.sizes(), " of ", out.scalar_type(), "; only the rows may differ");
    TORCH_CHECK_VALUE(
        in_splits.scalar_type() == at::kLong && in_splits.dim() == 1 && in_splits.size(0) == size,
        "in_splits has the shape ", in_splits.sizes(), " of ", in_splits.scalar_type(),
        ", allowed is [", size, "] of Long");
    TORCH_CHECK_VALUE(out_splits_offsets.scalar_type() == at::kLong &&
                          out_splits_offsets.dim() == 2 && out_splits_offsets.size(0) == 2 &&
                          out_splits_offsets.size(1) == size,
                      "out_splits_offsets has the shape ", out_splits_offsets.sizes(), " of ",
                      out_splits_offsets.scalar_type(), ", allowed is [2, ", size, "] of Long");
    return std::pair(PeerTensor::contiguous(input, "input", group_name),
                     PeerTensor::contiguous(in_splits, "in_splits", group_name));
  });
  const std::int64_t room = out.size(0);
  const std::int64_t row = input.numel() == 0 ? 0 : input.numel() / input.size(0);
  const std::string call = "all_to_all_vdev " + rows.about() + ", splits at " + splits.about() +
                           ", out of " + std::to_string(room) + " rows";
  together(*workspace, call, [&, &rows = rows, &splits = splits] {
    // All ranks look at all splits, so that all see what does not fit.
    std::vector<const std::int64_t*> table;
    std::vector<std::int64_t> received(size, 0);
    for (int member = 0; member < size; ++member) {
      table.push_back(reinterpret_cast<const std::int64_t*>(splits.address(member)));
      std::int64_t sent = 0;
      for (int to = 0; to < size; ++to) {
        const std::int64_t count = table[member][to];
        TORCH_CHECK_VALUE(count >= 0 && count <= input.size(0) - sent, "in_splits of rank ", member,
                          " say ", count, " rows for rank ", to, ", and ", input.size(0) - sent,
                          " of input are left");
        TORCH_CHECK_VALUE(count <= room - received[to], "rank ", to,
                          " would receive more than the ", room, " rows that out has");
        sent += count;
        received[to] += count;
      }
    }
    auto* const out_splits = out_splits_offsets.mutable_data_ptr<std::int64_t>();
    std::int64_t at = 0;
    for (int member = 0; member < size; ++member) {
      const std::int64_t count = table[member][rank];
      std::int64_t from = 0;
      for (int to = 0; to < rank; ++to) from += table[member][to];
      out_splits[member] = count;
      out_splits[size + member] = at;
      if (count * row > 0)
        out.slice(0, at, at + count)
            .view({count * row})
            .copy_(rows.part(member, from * row, count * row));
      at += count;
    }
  });
}

// All ranks' memory in the place of a symmetric tensor.
inline std::vector<at::Tensor> get_remote_tensors(const at::Tensor& x, std::string group_name) {
  const PeerTensor tensor(x, "x", group_name);
  std::vector<at::Tensor> all;
  for (int member = 0; member < tensor.size(); ++member) all.push_back(tensor.whole(member));
  return all;
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
  Reduction reduction{};
  std::vector<SharedOut> blocks;
  const PeerTensor symmetric = workspace->checked([&] {
    TORCH_CHECK_VALUE(input.dim() == 2 && (dim == 0 || dim == 1), "input has ", input.dim(),
                      " dimensions and dim is ", dim, ", allowed are 2, and 0 or 1");
    reduction = reduction_of(red_op, input.scalar_type());
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
      for (int member = 0; member < workspace->size(); ++member)
        parts.push_back(symmetric.whole(member).narrow(dim, block.begin, block.end - block.begin));
      combine({out[done++]}, parts, reduction);
    }
  });
}

inline void check_words(const char* name, const at::Tensor& input, std::int64_t offset,
                        std::int64_t value, std::int64_t count) {
  TORCH_CHECK_VALUE(input.dim() == 1 && input.is_contiguous() && input.scalar_type() == at::kUInt32,
                    name, ": input is of ", input.scalar_type(), " and has ", input.dim(),
                    " dimensions, allowed is a contiguous one of UInt32");
  TORCH_CHECK_VALUE(value >= 0 && value <= std::numeric_limits<std::uint32_t>::max(), name,
                    ": val is ", value, ", allowed are 0 to 4294967295");
  TORCH_CHECK_VALUE(offset >= 0 && count > 0 && offset <= input.numel() - count, name, ": ", count,
                    " words from ", offset, " are asked for, and input has ", input.numel());
}

inline at::Tensor memset32_(at::Tensor& input, std::int64_t offset, std::int64_t val,
                            std::int64_t count) {
  check_words("memset32_", input, offset, val, count);
  auto* const begin = static_cast<std::uint32_t*>(input.mutable_data_ptr()) + offset;
  std::fill(begin, begin + count, static_cast<std::uint32_t>(val));
  return input;
}

// What this thread wrote before is seen by who sees the word.
inline at::Tensor stream_write_value32_(at::Tensor& input, std::int64_t offset, std::int64_t val) {
  check_words("stream_write_value32_", input, offset, val, 1);
  auto* const word = static_cast<std::uint32_t*>(input.mutable_data_ptr()) + offset;
  std::atomic_ref(*word).store(static_cast<std::uint32_t>(val), std::memory_order_release);
  return input;
}

inline void add_symmetric_operations(torch::Library& library) {
  library.impl("one_shot_all_reduce", one_shot_all_reduce);
  library.impl("one_shot_all_reduce_out", one_shot_all_reduce_out);
  library.impl("one_shot_all_reduce_copy", one_shot_all_reduce_copy);
  library.impl("one_shot_all_reduce_copy_out", one_shot_all_reduce_copy_out);
  library.impl("two_shot_all_reduce_", two_shot_all_reduce_);
  library.impl("two_shot_all_reduce_out", two_shot_all_reduce_out);
  library.impl("reduce_scatter_out", reduce_scatter_out);
  library.impl("all_to_all_vdev", all_to_all_vdev);
  library.impl("get_remote_tensors", get_remote_tensors);
  library.impl("memset32_", memset32_);
  library.impl("stream_write_value32_", stream_write_value32_);
}

}  // namespace memspan::tensors
