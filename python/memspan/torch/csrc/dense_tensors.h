// SPDX-License-Identifier: Apache-2.0
// Tensors as memspan/group.h takes them: dense ones of the CPU, without gaps, of a type with a
// number.
#pragma once

#include <ATen/ATen.h>
#include <memspan/group.h>

#include <cstddef>
#include <cstdint>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

namespace memspan::tensors {

using at::Tensor;
using Tensors = std::vector<Tensor>;

inline const Tensor& check_tensor(const Tensor& tensor) {
  TORCH_CHECK_TYPE(tensor.device().is_cpu(),
                   "the backend memspan moves tensors of the CPU, and got one of ",
                   tensor.device());
  TORCH_CHECK_TYPE(tensor.layout() == at::kStrided,
                   "the backend memspan moves dense tensors, and got a layout of ",
                   tensor.layout());
  return tensor;
}

inline const Tensor& only(const Tensors& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "expected 1 tensor, got ", tensors.size());
  return check_tensor(tensors[0]);
}

// The same elements without gaps: the tensor itself, or a copy.
inline Tensor to_read(const Tensor& tensor) {
  return check_tensor(tensor).contiguous();
}

// Where a result goes that is without gaps: the tensor itself, or memory that is copied to it at
// the end.
class ToWrite {
 public:
  explicit ToWrite(const Tensor& tensor)
      : tensor_(check_tensor(tensor)),
        flat_(tensor.is_contiguous() ? tensor
                                     : at::empty_like(tensor, at::MemoryFormat::Contiguous)) {}
  // Of a result that is a value, too.
  static ToWrite filled(const Tensor& tensor) {
    ToWrite made(tensor);
    if (!made.flat_.is_same(tensor)) made.flat_.copy_(tensor);
    return made;
  }
  void* data() const { return flat_.data_ptr(); }
  size_t bytes() const { return flat_.nbytes(); }
  int64_t numel() const { return flat_.numel(); }
  const Tensor& flat() const { return flat_; }
  void finish() const {
    if (!flat_.is_same(tensor_)) tensor_.copy_(flat_);
  }

 private:
  Tensor tensor_;
  Tensor flat_;
};

struct ReductionKind {
  memspan_type_t type;
  memspan_op_t op;
};

inline memspan_type_t type_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBool:
    case at::kByte:
      return MEMSPAN_TYPE_UINT8;
    case at::kChar:
      return MEMSPAN_TYPE_INT8;
    case at::kShort:
      return MEMSPAN_TYPE_INT16;
    case at::kInt:
      return MEMSPAN_TYPE_INT32;
    case at::kLong:
      return MEMSPAN_TYPE_INT64;
    case at::kUInt16:
      return MEMSPAN_TYPE_UINT16;
    case at::kUInt32:
      return MEMSPAN_TYPE_UINT32;
    case at::kUInt64:
      return MEMSPAN_TYPE_UINT64;
    case at::kHalf:
      return MEMSPAN_TYPE_FLOAT16;
    case at::kBFloat16:
      return MEMSPAN_TYPE_BFLOAT16;
    case at::kFloat:
      return MEMSPAN_TYPE_FLOAT32;
    case at::kDouble:
      return MEMSPAN_TYPE_FLOAT64;
    case at::kComplexFloat:
      return MEMSPAN_TYPE_COMPLEX64;
    case at::kComplexDouble:
      return MEMSPAN_TYPE_COMPLEX128;
    default:
      TORCH_CHECK_TYPE(false, "the backend memspan reduces no tensors of ", tensor.scalar_type());
  }
}

// Of bools, whose values are 0 and 1.
inline memspan_op_t logical(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
      return MEMSPAN_OP_OR;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
      return MEMSPAN_OP_AND;
    case c10d::ReduceOp::BXOR:
      return MEMSPAN_OP_XOR;
    default:
      TORCH_CHECK_VALUE(false, "the backend memspan has no such reduction of bools");
  }
}

inline ReductionKind kind_of(const Tensor& tensor, const c10d::ReduceOp& reduce) {
  const c10d::ReduceOp::RedOpType op = reduce.op_;
  const memspan_type_t type = type_of(check_tensor(tensor));
  if (tensor.scalar_type() == at::kBool) return {type, logical(op)};
  switch (op) {
    case c10d::ReduceOp::SUM:
      return {type, MEMSPAN_OP_SUM};
    case c10d::ReduceOp::AVG:
      return {type, MEMSPAN_OP_AVERAGE};
    case c10d::ReduceOp::PRODUCT:
      return {type, MEMSPAN_OP_PRODUCT};
    case c10d::ReduceOp::MIN:
      return {type, MEMSPAN_OP_MIN};
    case c10d::ReduceOp::MAX:
      return {type, MEMSPAN_OP_MAX};
    case c10d::ReduceOp::BAND:
      return {type, MEMSPAN_OP_AND};
    case c10d::ReduceOp::BOR:
      return {type, MEMSPAN_OP_OR};
    case c10d::ReduceOp::BXOR:
      return {type, MEMSPAN_OP_XOR};
    default:
      TORCH_CHECK_VALUE(false, "the backend memspan has no reduction PREMUL_SUM");
  }
}

}  // namespace memspan::tensors
