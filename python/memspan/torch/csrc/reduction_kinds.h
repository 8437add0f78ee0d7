// SPDX-License-Identifier: Apache-2.0
// PyTorch's types and reductions as memspan/group.h numbers them.
#pragma once

#include <ATen/ATen.h>
#include <memspan/group.h>

#include <string_view>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace memspan::tensors {

using RedOpType = c10d::ReduceOp::RedOpType;

struct ReductionKind {
  memspan_type_t type;
  memspan_op_t op;
};

inline memspan_type_t type_of(at::ScalarType type) {
  switch (type) {
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
    case at::kFloat8_e4m3fn:
      return MEMSPAN_TYPE_FLOAT8_E4M3FN;
    case at::kFloat8_e5m2:
      return MEMSPAN_TYPE_FLOAT8_E5M2;
    default:
      TORCH_CHECK_TYPE(false, "memspan reduces no tensors of ", type);
  }
}

// Of bools, whose values are 0 and 1.
inline memspan_op_t logical(RedOpType op) {
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
      TORCH_CHECK_VALUE(false, "memspan has no such reduction of bools");
  }
}

inline ReductionKind kind_of(at::ScalarType scalar_type, RedOpType op) {
  const memspan_type_t type = type_of(scalar_type);
  if (scalar_type == at::kBool) return {type, logical(op)};
  switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::PREMUL_SUM:  // of values that scaled() gave
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
      TORCH_CHECK_VALUE(false, "memspan has no reduction ", static_cast<int>(op));
  }
}

// By the names that torch.ops.symm_mem and torch.ops.memspan have.
inline ReductionKind kind_of(at::ScalarType type, std::string_view name) {
  TORCH_CHECK_VALUE(!at::isComplexType(type) || (name != "min" && name != "max"), "reduce_op is ",
                    name, ", which complex numbers do not have");
  TORCH_CHECK_VALUE(!at::isIntegralType(type, true) || name != "avg",
                    "reduce_op is avg, which is of floating-point numbers, and the tensor is of ",
                    type);
  if (name == "sum") return kind_of(type, c10d::ReduceOp::SUM);
  if (name == "avg") return kind_of(type, c10d::ReduceOp::AVG);
  if (name == "min") return kind_of(type, c10d::ReduceOp::MIN);
  if (name == "max") return kind_of(type, c10d::ReduceOp::MAX);
  TORCH_CHECK_VALUE(name == "product", "reduce_op is ", name,
                    ", allowed are sum, avg, min, max and product");
  return kind_of(type, c10d::ReduceOp::PRODUCT);
}

}  // namespace memspan::tensors
