// SPDX-License-Identifier: Apache-2.0
// The extension memspan.torch._symmetric_memory: symmetric memory of the CPU for PyTorch.
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "any_tensor_operations.h"
#include "gradients.h"
#include "groups.h"
#include "peer_memory.h"
#include "symmetric_moves.h"
#include "symmetric_reductions.h"
#include "workspace.h"

namespace memspan::tensors {

namespace {

using Handle = c10::intrusive_ptr<symm::SymmetricMemory>;

// As long as the process: PyTorch may call them until its end.
torch::Library& implementations(c10::DispatchKey key) {
  return *new torch::Library(torch::Library::IMPL, "symm_mem", key, __FILE__, __LINE__);
}

void enable() {
  static const bool is_enabled = [] {
    TORCH_CHECK(!symm::has_allocator(c10::kCPU),
                "something else gives PyTorch symmetric memory of the CPU already");
    const auto allocator = c10::make_intrusive<PeerMemoryAllocator>();
    symm::register_availability(PeerMemoryAllocator::kName, allocator);
    symm::register_allocator(c10::kCPU, allocator);
    torch::Library& of_cpu = implementations(c10::DispatchKey::CPU);
    add_symmetric_reductions(of_cpu);
    add_symmetric_moves(of_cpu);
    add_any_tensor_operations(of_cpu);
    add_gradients(implementations(c10::DispatchKey::AutogradCPU));
    return true;
  }();
  (void)is_enabled;
}

// As _SymmetricMemory.get_buffer() and its kin, for tensors that keep the memory.
const PeerMemory& peer_memory(const Handle& handle) {
  const auto* memory = dynamic_cast<const PeerMemory*>(handle.get());
  TORCH_CHECK_VALUE(memory != nullptr, "the handle is of no symmetric memory of memspan's");
  return *memory;
}

at::Tensor buffer(const Handle& handle, int rank, const std::vector<std::int64_t>& sizes,
                  at::ScalarType dtype, std::int64_t storage_offset) {
  return peer_memory(handle).buffer(rank, sizes, dtype, storage_offset);
}

at::Tensor signal_pad(const Handle& handle, int rank, std::vector<std::int64_t> sizes,
                      std::optional<at::ScalarType> dtype, std::int64_t storage_offset) {
  const PeerMemory& memory = peer_memory(handle);
  const at::ScalarType type = dtype.value_or(at::kUInt32);
  if (sizes.empty()) {
    const auto all = static_cast<std::int64_t>(memory.pad_bytes() / c10::elementSize(type));
    sizes.push_back(all - storage_offset);
  }
  return memory.signal_pad(rank, sizes, type, storage_offset);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() =
      "Symmetric memory of the CPU for PyTorch; memspan.torch.symm_mem says what it does.";
  module.def("enable", enable);
  module.def("buffer", buffer);
  module.def("signal_pad", signal_pad);
  module.def("reduce_scatter_offset", reduce_scatter_offset);
}

}  // namespace memspan::tensors
