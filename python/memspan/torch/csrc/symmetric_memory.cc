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

#include "combine.h"
#include "groups.h"
#include "peer_memory.h"
#include "symmetric_operations.h"
#include "workspace.h"

namespace memspan::tensors {

namespace {

using Handle = c10::intrusive_ptr<symm::SymmetricMemory>;

void enable() {
  static const bool is_enabled = [] {
    TORCH_CHECK(!symm::has_allocator(c10::kCPU),
                "something else gives PyTorch symmetric memory of the CPU already");
    const auto allocator = c10::make_intrusive<PeerMemoryAllocator>();
    symm::register_availability(PeerMemoryAllocator::kName, allocator);
    symm::register_allocator(c10::kCPU, allocator);
    // As long as the process: PyTorch may call these until its end.
    add_operations(*new torch::Library(torch::Library::IMPL, "symm_mem", c10::DispatchKey::CPU,
                                       __FILE__, __LINE__));
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

at::Tensor buffer(const Handle& handle, int rank, std::vector<std::int64_t> sizes,
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

// A part of the member's slot in this call, from a byte on.
at::Tensor slot(const Workspace& workspace, int member, std::vector<std::int64_t> sizes,
                at::ScalarType dtype, std::size_t offset) {
  return at::from_blob(
      workspace.slot(member) + offset, sizes, [data = workspace.data()](void*) {},
      at::TensorOptions().dtype(dtype));
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() =
      "Symmetric memory of the CPU for PyTorch; memspan.torch.symm_mem says what it does.";
  module.def("enable", enable);
  module.def("buffer", buffer);
  module.def("signal_pad", signal_pad);
  module.def("workspace",
             [](const std::string& name) { return Groups::instance().workspace(name); });
  module.def("combine", [](const std::vector<at::Tensor>& results,
                           const std::vector<at::Tensor>& parts, const std::string& reduce_op) {
    const WithoutGil without_gil;
    combine(results, parts, reduction_of(reduce_op, parts.at(0).scalar_type()));
  });
  py::class_<Workspace, std::shared_ptr<Workspace>>(module, "Workspace")
      .def_property_readonly("rank", &Workspace::rank)
      .def_property_readonly("size", &Workspace::size)
      .def("begin", &Workspace::begin)
      .def("refuse", &Workspace::refuse)
      .def("slot", slot)
      .def("publish", &Workspace::publish)
      .def("publish_all", &Workspace::publish_all)
      .def("next", &Workspace::next)
      .def("await_all", &Workspace::await_all)
      .def("release", &Workspace::release)
      .def("release_all", &Workspace::release_all)
      .def("end", &Workspace::end)
      .def("end_together", &Workspace::end_together)
      .def("abandon", &Workspace::abandon);
}

}  // namespace memspan::tensors
