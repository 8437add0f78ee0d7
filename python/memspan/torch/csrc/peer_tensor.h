// SPDX-License-Identifier: Apache-2.0
// Tensors that are symmetric themselves, for the operations on them: nothing is copied that can be
// read where it lies.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

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
    all.reserve(size());
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

}  // namespace memspan::tensors
