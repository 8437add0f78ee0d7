// SPDX-License-Identifier: Apache-2.0
// What PyTorch calls first: where gradients are wanted, memspan.torch.symm_mem_gradients does what
// is to be done, which calls the operations in its turn.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <cstdint>
#include <string>
#include <vector>

#include "any_tensor_operations.h"

namespace memspan::tensors {

namespace py = pybind11;

inline bool wants_gradient(const at::Tensor& tensor) {
  return tensor.requires_grad();
}

// Inside torch.distributed._symmetric_memory._test_mode().
inline bool is_test_mode() {
  const py::gil_scoped_acquire gil;
  static const py::handle module =
      py::module_::import("torch.distributed._symmetric_memory").release();
  return module.attr("_is_test_mode").cast<bool>();
}

template <typename Result, typename... Arguments>
Result in_python(const char* function, const Arguments&... arguments) {
  const py::gil_scoped_acquire gil;
  return py::module_::import("memspan.torch.symm_mem_gradients")
      .attr(function)(arguments...)
      .template cast<Result>();
}

inline Gathered all_gather_matmul_with_gradients(const at::Tensor& A, at::TensorList Bs,
                                                 std::int64_t gather_dim, std::string group_name,
                                                 bool return_A) {
  const bool wants = at::GradMode::is_enabled() &&
                     (wants_gradient(A) || std::any_of(Bs.begin(), Bs.end(), wants_gradient));
  if (wants || is_test_mode())
    return in_python<Gathered>("all_gather_matmul", A, Bs.vec(), gather_dim, group_name, return_A);
  const at::AutoDispatchBelowAutograd below;
  static const auto operation = c10::Dispatcher::singleton()
                                    .findSchemaOrThrow("symm_mem::fused_all_gather_matmul", "")
                                    .typed<decltype(fused_all_gather_matmul)>();
  return operation.call(A, Bs, gather_dim, std::move(group_name), return_A);
}

inline at::Tensor matmul_reduce_scatter_with_gradients(const at::Tensor& A, const at::Tensor& B,
                                                       std::string reduce_op,
                                                       std::int64_t scatter_dim,
                                                       std::string group_name) {
  if ((at::GradMode::is_enabled() && (wants_gradient(A) || wants_gradient(B))) || is_test_mode())
    return in_python<at::Tensor>("matmul_reduce_scatter", A, B, reduce_op, scatter_dim, group_name);
  const at::AutoDispatchBelowAutograd below;
  static const auto operation = c10::Dispatcher::singleton()
                                    .findSchemaOrThrow("symm_mem::fused_matmul_reduce_scatter", "")
                                    .typed<decltype(fused_matmul_reduce_scatter)>();
  return operation.call(A, B, std::move(reduce_op), scatter_dim, std::move(group_name));
}

inline void add_gradients(torch::Library& library) {
  library.impl("fused_all_gather_matmul", all_gather_matmul_with_gradients);
  library.impl("fused_matmul_reduce_scatter", matmul_reduce_scatter_with_gradients);
}

}  // namespace memspan::tensors
