// SPDX-License-Identifier: Apache-2.0
// What torch.ops.symm_mem moves and sets in symmetric tensors.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "groups.h"
#include "peer_tensor.h"
#include "workspace.h"

namespace memspan::tensors {

// NOLINTBEGIN(performance-unnecessary-value-param): because PyTorch declares these operations with
// texts by value

// Rows that each rank has for each other one: all ranks look at all, so that all see what does not
// fit.
class SplitsOfAll {
 public:
  SplitsOfAll(const PeerTensor& splits, std::int64_t rows, std::int64_t room)
      : size_(splits.size()) {
    for (int member = 0; member < size_; ++member) {
      const auto* theirs = reinterpret_cast<const std::int64_t*>(splits.address(member));
      counts_.insert(counts_.end(), theirs, theirs + size_);
    }
    std::vector<std::int64_t> received(size_, 0);
    for (int member = 0; member < size_; ++member) {
      std::int64_t left = rows;
      for (int to = 0; to < size_; ++to) {
        const std::int64_t count = (*this)(member, to);
        TORCH_CHECK_VALUE(count >= 0 && count <= left, "in_splits of rank ", member, " say ", count,
                          " rows for rank ", to, ", and ", left, " of input are left");
        TORCH_CHECK_VALUE(count <= room - received[to], "rank ", to,
                          " would receive more than the ", room, " rows that out has");
        left -= count;
        received[to] += count;
      }
    }
  }

  std::int64_t operator()(int from, int to) const { return counts_[from * size_ + to]; }
  // Where in `from`'s input those for `to` begin.
  std::int64_t begin(int from, int to) const {
    const auto row = counts_.begin() + std::ptrdiff_t{from} * size_;
    return std::accumulate(row, row + to, std::int64_t{0});
  }

 private:
  const int size_;
  std::vector<std::int64_t> counts_;
};

inline void check_all_to_all(const at::Tensor& input, const at::Tensor& out,
                             const at::Tensor& in_splits, const at::Tensor& out_splits_offsets,
                             int size) {
  check_contiguous(out, "out");
  check_contiguous(out_splits_offsets, "out_splits_offsets");
  TORCH_CHECK_VALUE(input.dim() > 0 && out.dim() > 0 && input.scalar_type() == out.scalar_type() &&
                        input.sizes().slice(1) == out.sizes().slice(1),
                    "input has the shape ", input.sizes(), " of ", input.scalar_type(), ", out ",
                    out.sizes(), " of ", out.scalar_type(), "; only the rows may differ");
  TORCH_CHECK_VALUE(
      in_splits.scalar_type() == at::kLong && in_splits.sizes() == c10::IntArrayRef({size}),
      "in_splits has the shape ", in_splits.sizes(), " of ", in_splits.scalar_type(),
      ", allowed is [", size, "] of Long");
  TORCH_CHECK_VALUE(out_splits_offsets.scalar_type() == at::kLong &&
                        out_splits_offsets.sizes() == c10::IntArrayRef({2, size}),
                    "out_splits_offsets has the shape ", out_splits_offsets.sizes(), " of ",
                    out_splits_offsets.scalar_type(), ", allowed is [2, ", size, "] of Long");
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
    check_all_to_all(input, out, in_splits, out_splits_offsets, size);
    return std::pair(PeerTensor::contiguous(input, "input", group_name),
                     PeerTensor::contiguous(in_splits, "in_splits", group_name));
  });
  const std::int64_t row = input.numel() == 0 ? 0 : input.numel() / input.size(0);
  const std::string call = "all_to_all_vdev " + rows.about() + ", splits at " + splits.about() +
                           ", out of " + std::to_string(out.size(0)) + " rows";
  together(*workspace, call, [&, &rows = rows, &splits = splits] {
    const SplitsOfAll counts(splits, input.size(0), out.size(0));
    auto* const out_splits = out_splits_offsets.mutable_data_ptr<std::int64_t>();
    std::int64_t at = 0;
    for (int member = 0; member < size; ++member) {
      const std::int64_t count = counts(member, rank);
      out_splits[member] = count;
      out_splits[size + member] = at;
      if (count * row > 0)
        out.narrow(0, at, count)
            .view({count * row})
            .copy_(rows.part(member, counts.begin(member, rank) * row, count * row));
      at += count;
    }
  });
}

// All ranks' memory in the place of a symmetric tensor.
inline std::vector<at::Tensor> get_remote_tensors(const at::Tensor& x, std::string group_name) {
  const PeerTensor tensor(x, "x", group_name);
  std::vector<at::Tensor> all;
  all.reserve(tensor.size());
  for (int member = 0; member < tensor.size(); ++member) all.push_back(tensor.whole(member));
  return all;
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

inline void add_symmetric_moves(torch::Library& library) {
  library.impl("all_to_all_vdev", all_to_all_vdev);
  library.impl("get_remote_tensors", get_remote_tensors);
  library.impl("memset32_", memset32_);
  library.impl("stream_write_value32_", stream_write_value32_);
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace memspan::tensors
