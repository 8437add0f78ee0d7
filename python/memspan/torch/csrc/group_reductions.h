// SPDX-License-Identifier: Apache-2.0
// Reductions of tensors by a group, and what is computed before and after.
#pragma once

#include <ATen/ATen.h>
#include <memspan/group.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dense_tensors.h"
#include "group_works.h"
#include "reduction_kinds.h"

namespace memspan::tensors {

// The type in which values are combined: of those of 8 bits the library knows two.
inline at::ScalarType combined_type(const Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  const bool is_known = type == at::kFloat8_e4m3fn || type == at::kFloat8_e5m2;
  return at::isFloat8Type(type) && !is_known ? at::kFloat : type;
}
// PyTorch has no products of types of 8 bits, which PREMUL_SUM needs.
inline at::ScalarType combined_type(const Tensor& tensor, const c10d::ReduceOp& reduce) {
  const bool is_scaled = reduce.op_ == c10d::ReduceOp::PREMUL_SUM;
  return is_scaled && at::isFloat8Type(tensor.scalar_type()) ? at::kFloat : combined_type(tensor);
}

// The values times the factor of PREMUL_SUM; themselves for another operation.
inline Tensor scaled(const Tensor& values, const c10d::ReduceOp& reduce) {
  if (reduce.op_ != c10d::ReduceOp::PREMUL_SUM) return values;
  TORCH_CHECK_VALUE(at::isFloatingType(values.scalar_type()),
                    "PREMUL_SUM is of floating-point numbers, and the tensor is of ",
                    values.scalar_type());
  const auto* by = static_cast<const c10d::PreMulSumSupplement*>(reduce.supplement_.get());
  TORCH_CHECK_VALUE(by != nullptr, "PREMUL_SUM has no factor");
  const at::NoGradGuard no_grad;
  const at::Scalar factor =
      by->tensor_factor.defined() ? by->tensor_factor.item() : at::Scalar(by->double_factor);
  return at::mul(values, factor);
}

// A reduction of a tensor, to itself.
struct Reduction {
  Reduction(const Tensor& tensor, const c10d::ReduceOp& reduce)
      : result(ToWrite::filled(tensor, combined_type(tensor, reduce))),
        values(scaled(result.flat(), reduce)),
        kind(kind_of(result.flat().scalar_type(), reduce.op_)) {}
  size_t count() const { return static_cast<size_t>(values.numel()); }

  ToWrite result;
  Tensor values;
  ReductionKind kind;
};

// Parts for each member, combined to a tensor of the size of this member's. Parts of different
// sizes are reduced one after the other, on all members alike.
class ScatteredReduction {
 public:
  ScatteredReduction(const Tensor& output, const Tensors& parts, const c10d::ReduceOp& reduce)
      : ScatteredReduction(output, reduce) {
    for (const Tensor& part : parts) add(values_of(part, reduce));
  }
  // Of parts that lie one behind the other.
  ScatteredReduction(const Tensor& output, const Tensor& parts, int size,
                     const c10d::ReduceOp& reduce)
      : ScatteredReduction(output, reduce) {
    const Tensor values = values_of(parts, reduce);
    held_.push_back(values);
    for (int part = 0; part < size; ++part) {
      places_.push_back(static_cast<const char*>(values.data_ptr()) +
                        static_cast<size_t>(part) * result_.bytes());
      counts_.push_back(static_cast<size_t>(result_.numel()));
    }
  }
  void run(memspan_group_t group, int rank) const {
    if (std::equal(counts_.begin() + 1, counts_.end(), counts_.begin()))
      check(memspan_group_reduce_scatter(group, result_.data(), places_.data(), counts_[0],
                                         kind_.type, kind_.op));
    else
      for (size_t root = 0; root < places_.size(); ++root)
        check(memspan_group_reduce(group, static_cast<int>(root) == rank ? result_.data() : nullptr,
                                   places_[root], counts_[root], kind_.type, kind_.op,
                                   static_cast<int>(root)));
    result_.finish();
  }

 private:
  ScatteredReduction(const Tensor& output, const c10d::ReduceOp& reduce)
      : result_(output, combined_type(output, reduce)),
        kind_(kind_of(result_.flat().scalar_type(), reduce.op_)) {}
  static Tensor values_of(const Tensor& tensor, const c10d::ReduceOp& reduce) {
    return scaled(to_read(tensor).to(combined_type(tensor, reduce)), reduce);
  }
  void add(const Tensor& values) {
    held_.push_back(values);
    places_.push_back(values.data_ptr());
    counts_.push_back(static_cast<size_t>(values.numel()));
  }

  ToWrite result_;
  ReductionKind kind_;
  Tensors held_;
  std::vector<const void*> places_;  // in held_, of each member's part
  std::vector<size_t> counts_;
};

// Everybody's tensor, whose sizes differ, to all.
inline void gather_uneven(memspan_group_t group, const std::vector<void*>& results,
                          const std::vector<size_t>& result_bytes, const void* values,
                          size_t bytes) {
  const std::vector<const void*> same(results.size(), values);
  const std::vector<size_t> sizes(results.size(), bytes);
  check(memspan_group_all_to_all(group, results.data(), result_bytes.data(), same.data(),
                                 sizes.data()));
}

// The sum of everybody's sparse tensor, in the order of members, written to this one's.
class SparseSum {
 public:
  SparseSum(const Tensor& tensor, const c10d::ReduceOp& reduce, int size)
      : tensor_(tensor), size_(static_cast<size_t>(size)) {
    TORCH_CHECK_TYPE(tensor.device().is_cpu() && tensor.layout() == at::kSparse,
                     "the backend memspan moves sparse tensors of the CPU in COO layout, and got ",
                     tensor.layout(), " of ", tensor.device());
    TORCH_CHECK_VALUE(reduce.op_ == c10d::ReduceOp::SUM,
                      "of sparse tensors the backend memspan has the reduction SUM only");
    const at::NoGradGuard no_grad;
    const Tensor mine = tensor.coalesce();
    indices_ = mine.indices().t().contiguous();  // an element's indices side by side
    values_ = mine.values().contiguous();
  }
  void run(memspan_group_t group) const {
    const at::NoGradGuard no_grad;
    int64_t count = values_.size(0);
    std::vector<int64_t> counts(size_);
    std::vector<void*> places;
    places.reserve(size_);
    for (int64_t& theirs : counts) places.push_back(&theirs);
    check(memspan_group_all_gather(group, places.data(), &count, sizeof count));
    const Tensors indices = gather(group, indices_, counts);
    const Tensors values = gather(group, values_, counts);
    Tensor sum;
    for (size_t member = 0; member < size_; ++member) {
      const Tensor part = at::sparse_coo_tensor(indices[member].t(), values[member],
                                                tensor_.sizes(), tensor_.options(), true);
      sum = member == 0 ? part : at::add(sum, part);
    }
    tensor_.copy_(sum);
  }

 private:
  // Everybody's rows.
  Tensors gather(memspan_group_t group, const Tensor& rows,
                 const std::vector<int64_t>& counts) const {
    Tensors all;
    std::vector<void*> places;
    std::vector<size_t> bytes;
    for (const int64_t count : counts) {
      std::vector<int64_t> shape = rows.sizes().vec();
      shape[0] = count;
      all.push_back(at::empty(shape, rows.options()));
      places.push_back(all.back().data_ptr());
      bytes.push_back(all.back().nbytes());
    }
    gather_uneven(group, places, bytes, rows.data_ptr(), rows.nbytes());
    return all;
  }

  Tensor tensor_;
  size_t size_;
  Tensor indices_, values_;
};

}  // namespace memspan::tensors
