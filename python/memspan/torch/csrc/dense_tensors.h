// SPDX-License-Identifier: Apache-2.0
// Tensors as memspan/group.h takes them: dense ones of the CPU, without gaps.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memspan::tensors {

using at::Tensor;
using Tensors = std::vector<Tensor>;

inline const Tensor& check_tensor(const Tensor& tensor) {
  TORCH_CHECK_TYPE(tensor.device().is_cpu(),
                   "the backend memspan moves tensors of the CPU, and got one of ", tensor.device(),
                   "; a group of \"cpu:memspan,cuda:nccl\" has a backend for those of CUDA");
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
  explicit ToWrite(const Tensor& tensor) : ToWrite(tensor, tensor.scalar_type()) {}
  // Computed as another type, and rounded to the tensor's at the end.
  ToWrite(const Tensor& tensor, at::ScalarType type)
      : tensor_(check_tensor(tensor)),
        flat_(tensor.is_contiguous() && tensor.scalar_type() == type
                  ? tensor
                  : at::empty(tensor.sizes(), tensor.options().dtype(type))) {}
  // Of a result that is a value, too.
  static ToWrite filled(const Tensor& tensor) { return filled(tensor, tensor.scalar_type()); }
  static ToWrite filled(const Tensor& tensor, at::ScalarType type) {
    ToWrite made(tensor, type);
    if (!made.flat_.is_same(tensor)) made.flat_.copy_(tensor);
    return made;
  }
  void* data() const { return flat_.data_ptr(); }
  size_t bytes() const { return flat_.nbytes(); }
  int64_t numel() const { return flat_.numel(); }
  const Tensor& flat() const { return flat_; }
  // Whether finish() copies.
  bool is_copy() const { return !flat_.is_same(tensor_); }
  // With the thread state of the call that made this object: a tensor of inference mode can be
  // written only in that mode.
  void finish() const {
    if (!is_copy()) return;
    const at::NoGradGuard no_grad;  // the caller may record gradients
    tensor_.copy_(flat_);
  }

 private:
  Tensor tensor_;
  Tensor flat_;
};

}  // namespace memspan::tensors
