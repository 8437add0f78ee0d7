// SPDX-License-Identifier: Apache-2.0
// torch.ops.memspan: collectives of a process group whose backend is memspan, as operators. They
// cost what the collective itself costs: no Work, no future, no thread, no lists of tensors.
//
//   all_reduce_(tensor, group, reduce_op="sum")              to the tensor itself
//   all_reduce(tensor, group, reduce_op="sum") -> Tensor     to a new one
//   all_gather(tensor, group) -> Tensor                      one behind the other, in dimension 0
//   all_gather_out(output, tensor, group)
//   reduce_scatter(tensor, group, reduce_op="sum") -> Tensor this rank's part of dimension 0
//   reduce_scatter_out(output, tensor, group, reduce_op="sum")
//
// `group` is a process group's name. All ranks call the same operator in the order of their other
// collectives. An operator is over when it returns. torch.compile traces all of them.
#pragma once

#include <ATen/ATen.h>
#include <memspan/group.h>
#include <torch/library.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <utility>
#include <vector>

#include "dense_tensors.h"
#include "group_reductions.h"
#include "shared_group.h"

namespace memspan::tensors {

// The backends of process groups by name. Each thread keeps the last one that it has looked up,
// until a process group of memspan's begins or ends.
class BackendsByName {
 public:
  using Backend = c10::intrusive_ptr<SharingBackend>;

  static void forget_all() { changes().fetch_add(1, std::memory_order_release); }

  static Backend find(std::string_view name) {
    static thread_local Last last;
    const std::uint64_t now = changes().load(std::memory_order_acquire);
    if (last.changes == now && last.name == name)
      if (Backend backend = last.backend.lock()) return backend;
    Backend backend = look_up(std::string(name));
    last = {now, std::string(name), c10::weak_intrusive_ptr<SharingBackend>(backend)};
    return backend;
  }

 private:
  struct Last {
    std::uint64_t changes = 0;
    std::string name;
    c10::weak_intrusive_ptr<SharingBackend> backend{Backend()};
  };
  static std::atomic<std::uint64_t>& changes() {
    static std::atomic<std::uint64_t> count{1};
    return count;
  }
  static Backend look_up(const std::string& name) {
    const auto group = c10d::resolve_process_group(name);
    TORCH_CHECK_VALUE(group->hasBackendForDeviceType(c10::kCPU), "the process group \"", name,
                      "\" has no backend for the CPU: torch.ops.memspan needs memspan");
    const auto backend = group->getBackend(c10::kCPU);
    TORCH_CHECK_VALUE(dynamic_cast<SharingBackend*>(backend.get()) != nullptr,
                      "the process group \"", name, "\" has the backend ",
                      backend->getBackendName(), " for the CPU: torch.ops.memspan needs memspan");
    return c10::static_intrusive_pointer_cast<SharingBackend>(backend);
  }
};

// Runs collective(group), which owns what it uses.
template <typename Function>
void run_operator(SharingBackend& backend, Function collective) {
  if (backend.run_at_once(collective)) return;
  const auto handle = backend.share_group();
  backend.run_in_order([collective, handle] { collective(handle->get()); });
}

inline void all_reduce_in_place(const Tensor& tensor, std::string_view group,
                                std::string_view reduce_op) {
  const auto backend = BackendsByName::find(group);
  const at::ScalarType type = combined_type(check_tensor(tensor));
  const ReductionKind kind = kind_of(type, reduce_op);
  const ToWrite result = ToWrite::filled(tensor, type);
  run_operator(*backend, [result, kind](memspan_group_t members) {
    check(memspan_group_all_reduce(members, result.data(), result.data(),
                                   static_cast<std::size_t>(result.numel()), kind.type, kind.op));
    result.finish();
  });
}

inline Tensor all_reduce(const Tensor& tensor, std::string_view group, std::string_view reduce_op) {
  const auto backend = BackendsByName::find(group);
  const at::ScalarType type = combined_type(check_tensor(tensor));
  const ReductionKind kind = kind_of(type, reduce_op);
  const Tensor values = to_read(tensor.to(type));
  Tensor made = at::empty(tensor.sizes(), tensor.options());
  const ToWrite result(made, type);
  run_operator(*backend, [values, result, kind](memspan_group_t members) {
    check(memspan_group_all_reduce(members, result.data(), values.data_ptr(),
                                   static_cast<std::size_t>(values.numel()), kind.type, kind.op));
    result.finish();
  });
  return made;
}

// `tensor` with dimension 0 times `factor`, or divided by it.
inline std::vector<c10::SymInt> gathered_sizes(const Tensor& tensor, int factor) {
  TORCH_CHECK_VALUE(tensor.dim() > 0, "a tensor without dimensions cannot be gathered: view(1)");
  std::vector<c10::SymInt> sizes = tensor.sym_sizes().vec();
  sizes[0] = sizes[0] * factor;
  return sizes;
}
inline std::vector<c10::SymInt> scattered_sizes(const Tensor& tensor, int parts) {
  TORCH_CHECK_VALUE(tensor.dim() > 0, "a tensor without dimensions has no parts");
  std::vector<c10::SymInt> sizes = tensor.sym_sizes().vec();
  TORCH_CHECK_VALUE(sizes[0] % parts == 0, "dimension 0 of the tensor is ", sizes[0],
                    ", which is no multiple of the group's size ", parts);
  sizes[0] = sizes[0] / parts;
  return sizes;
}
inline void check_result(const Tensor& output, const Tensor& tensor,
                         const std::vector<c10::SymInt>& sizes) {
  TORCH_CHECK_TYPE(output.scalar_type() == tensor.scalar_type(), "the output is of ",
                   output.scalar_type(), ", the tensor of ", tensor.scalar_type());
  TORCH_CHECK_VALUE(output.sym_sizes() == c10::SymIntArrayRef(sizes), "the output has the sizes ",
                    output.sym_sizes(), ", needed are ", c10::SymIntArrayRef(sizes));
}

inline void gather_to(SharingBackend& backend, const Tensor& output, const Tensor& tensor) {
  check_result(output, tensor, gathered_sizes(check_tensor(tensor), backend.getSize()));
  const Tensor values = to_read(tensor);
  const ToWrite result(output);
  run_operator(backend, [values, result, size = backend.getSize()](memspan_group_t members) {
    std::vector<void*> places;
    places.reserve(static_cast<std::size_t>(size));
    for (int member = 0; member < size; ++member)
      places.push_back(static_cast<char*>(result.data()) +
                       static_cast<std::size_t>(member) * values.nbytes());
    check(memspan_group_all_gather(members, places.data(), values.data_ptr(), values.nbytes()));
    result.finish();
  });
}
inline void all_gather_out(const Tensor& output, const Tensor& tensor, std::string_view group) {
  gather_to(*BackendsByName::find(group), output, tensor);
}
inline Tensor all_gather(const Tensor& tensor, std::string_view group) {
  const auto backend = BackendsByName::find(group);
  Tensor made =
      at::empty_symint(gathered_sizes(check_tensor(tensor), backend->getSize()), tensor.options());
  gather_to(*backend, made, tensor);
  return made;
}

inline void scatter_to(SharingBackend& backend, const Tensor& output, const Tensor& tensor,
                       std::string_view reduce_op) {
  check_result(output, tensor, scattered_sizes(check_tensor(tensor), backend.getSize()));
  const at::ScalarType type = combined_type(tensor);
  const ReductionKind kind = kind_of(type, reduce_op);
  const Tensor values = to_read(tensor.to(type));
  const ToWrite result(output, type);
  run_operator(backend, [values, result, kind, size = backend.getSize()](memspan_group_t members) {
    std::vector<const void*> places;
    places.reserve(static_cast<std::size_t>(size));
    for (int member = 0; member < size; ++member)
      places.push_back(static_cast<const char*>(values.data_ptr()) +
                       static_cast<std::size_t>(member) * result.bytes());
    check(memspan_group_reduce_scatter(members, result.data(), places.data(),
                                       static_cast<std::size_t>(result.numel()), kind.type,
                                       kind.op));
    result.finish();
  });
}
inline void reduce_scatter_out(const Tensor& output, const Tensor& tensor, std::string_view group,
                               std::string_view reduce_op) {
  scatter_to(*BackendsByName::find(group), output, tensor, reduce_op);
}
inline Tensor reduce_scatter(const Tensor& tensor, std::string_view group,
                             std::string_view reduce_op) {
  const auto backend = BackendsByName::find(group);
  Tensor made =
      at::empty_symint(scattered_sizes(check_tensor(tensor), backend->getSize()), tensor.options());
  scatter_to(*backend, made, tensor, reduce_op);
  return made;
}

inline void define_collective_operators(torch::Library& library) {
  library.def("all_reduce_(Tensor(a!) tensor, str group, str reduce_op='sum') -> ()");
  library.def("all_reduce(Tensor tensor, str group, str reduce_op='sum') -> Tensor");
  library.def("all_gather(Tensor tensor, str group) -> Tensor");
  library.def("all_gather_out(Tensor(a!) output, Tensor tensor, str group) -> ()");
  library.def("reduce_scatter(Tensor tensor, str group, str reduce_op='sum') -> Tensor");
  library.def(
      "reduce_scatter_out(Tensor(a!) output, Tensor tensor, str group, str reduce_op='sum') -> ()");
}
inline void implement_collective_operators(torch::Library& library) {
  library.impl("all_reduce_", all_reduce_in_place);
  library.impl("all_reduce", all_reduce);
  library.impl("all_gather", all_gather);
  library.impl("all_gather_out", all_gather_out);
  library.impl("reduce_scatter", reduce_scatter);
  library.impl("reduce_scatter_out", reduce_scatter_out);
}
// What torch.compile asks: the results' sizes and types.
inline void describe_collective_operators(torch::Library& library) {
  library.impl("all_reduce_", [](const Tensor&, std::string_view, std::string_view) {});
  library.impl("all_reduce", [](const Tensor& tensor, std::string_view, std::string_view) {
    return at::empty_symint(tensor.sym_sizes(), tensor.options());
  });
  library.impl("all_gather", [](const Tensor& tensor, std::string_view group) {
    return at::empty_symint(gathered_sizes(tensor, BackendsByName::find(group)->getSize()),
                            tensor.options());
  });
  library.impl("all_gather_out", [](const Tensor&, const Tensor&, std::string_view) {});
  library.impl(
      "reduce_scatter", [](const Tensor& tensor, std::string_view group, std::string_view) {
        return at::empty_symint(scattered_sizes(tensor, BackendsByName::find(group)->getSize()),
                                tensor.options());
      });
  library.impl("reduce_scatter_out",
               [](const Tensor&, const Tensor&, std::string_view, std::string_view) {});
}

}  // namespace memspan::tensors
