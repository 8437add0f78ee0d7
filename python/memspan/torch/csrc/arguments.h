// SPDX-License-Identifier: Apache-2.0
// What methods are given, looked at before anything moves.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <shmem.h>
// Before the other header, whose names would collide otherwise.
#include <shmem_api.h>

#include <cstdint>
#include <utility>

#include "allocations.h"

namespace memspan::tensors {

inline void require_job() {
  TORCH_CHECK(shmem_init_status() == SHMEM_STATUS_IS_INITIALIZED,
              "this process is in no job; Manager.attr_init() starts one");
}

// An int, or the one element of a tensor of integers.
inline std::int64_t number_of(const c10::IValue& value, const char* name) {
  if (value.isInt()) return value.toInt();
  TORCH_CHECK_VALUE(value.isTensor(), name, " is of type ", value.tagKind(),
                    ", allowed are an int and a tensor of one integer");
  const at::Tensor& tensor = value.toTensor();
  TORCH_CHECK_VALUE(tensor.numel() == 1, name, " has ", tensor.numel(), " elements, allowed is 1");
  TORCH_CHECK_VALUE(c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false), name,
                    " is of ", tensor.scalar_type(), ", allowed are integers");
  const at::Scalar element = tensor.item();
  if (tensor.scalar_type() == at::kUInt64)
    TORCH_CHECK_VALUE(std::in_range<std::int64_t>(element.to<std::uint64_t>()), name, " is ",
                      element.to<std::uint64_t>(), ", allowed is what an int64 holds");
  return element.toLong();
}

inline std::int32_t word_value(const c10::IValue& value, const char* name) {
  const std::int64_t number = number_of(value, name);
  TORCH_CHECK_VALUE(std::in_range<std::int32_t>(number), name, " is ", number,
                    ", allowed is what an int32 holds");
  return static_cast<std::int32_t>(number);
}

inline int checked_pe(std::int64_t pe) {
  const int count = shmem_n_pes();
  TORCH_CHECK_VALUE(pe >= 0 && pe < count, "target_pe is ", pe, ", allowed are 0 to ", count - 1);
  return static_cast<int>(pe);
}

// Memory as it lies there, element after element.
inline void check_plain(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK_VALUE(
      tensor.device().is_cpu(), name, " is on ", tensor.device(),
      ", allowed are tensors of the CPU; memspan.torch.symmetric_memory has puts, gets "
      "and signals for those of CUDA");
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, name, " is no dense tensor");
  TORCH_CHECK_VALUE(tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg(), name,
                    " is not contiguous");
  const char* const why = why_detached(tensor);
  TORCH_CHECK_VALUE(why == nullptr, name, " ", why);
}

// Tensors of memspan.torch.empty() are in the heap as well.
inline void check_symmetric(const at::Tensor& tensor, const char* name) {
  if (tensor.numel() == 0 || allocation_of(tensor) != nullptr) return;
  auto* const first = static_cast<char*>(const_cast<void*>(tensor.const_data_ptr()));
  const int me = shmem_my_pe();
  TORCH_CHECK_VALUE(aclshmem_ptr(first, me) != nullptr &&
                        aclshmem_ptr(first + tensor.nbytes() - 1, me) != nullptr,
                    name, " is not a symmetric tensor; Manager.malloc() makes them");
}

struct Elements {
  char* begin;
  std::size_t bytes;
};

inline Elements elements_of(const at::Tensor& tensor, const char* name, std::int64_t offset,
                            std::int64_t count) {
  check_plain(tensor, name);
  const std::int64_t all = tensor.numel();
  TORCH_CHECK_VALUE(offset >= 0 && count >= 0 && offset <= all && count <= all - offset, name,
                    " has ", all, " elements, and ", count, " from element ", offset,
                    " are asked for");
  const std::size_t size = tensor.element_size();
  auto* const base = static_cast<char*>(tensor.mutable_data_ptr());
  return {base + static_cast<std::size_t>(offset) * size, static_cast<std::size_t>(count) * size};
}

inline std::int32_t* word_of(const at::Tensor& signal, const c10::IValue& offset) {
  TORCH_CHECK_VALUE(signal.scalar_type() == at::kInt, "signal is of ", signal.scalar_type(),
                    ", allowed is int32");
  const Elements word = elements_of(signal, "signal", number_of(offset, "signal_offset"), 1);
  check_symmetric(signal, "signal");
  return reinterpret_cast<std::int32_t*>(word.begin);
}

}  // namespace memspan::tensors
