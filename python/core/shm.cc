// SPDX-License-Identifier: Apache-2.0
// MemFabric's Share Memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <smem/host/smem_shm.h>

#include <cstring>
#include <string>
#include <tuple>

#include "c_text.h"
#include "callbacks.h"
#include "calls.h"
#include "handles.h"
#include "modules.h"

namespace memspan::python {
namespace {

// One function for all spaces: the library passes it no argument.
Callback exit_listener;

void on_exit(int status) {
  if (!Py_IsInitialized()) return;
  const nb::gil_scoped_acquire held;
  call_back(exit_listener.get(), "the exit function", status);
}

smem_shm_config_t shm_config_of(nb::handle from) {
  const auto number = [&](const char* name) { return nb::cast<std::uint32_t>(from.attr(name)); };
  smem_shm_config_t config = {};
  config.shmInitTimeout = number("init_timeout");
  config.shmCreateTimeout = number("create_timeout");
  config.controlOperationTimeout = number("operation_timeout");
  config.startConfigStoreServer = nb::cast<bool>(from.attr("start_store"));
  config.flags = number("flags");
  return config;
}

// What all `ranks` gave, in their order, by `all_gather(bytes, received)`; empty with a code.
template <typename AllGather>
std::tuple<int, nb::bytes> gather(const nb::bytes& mine, std::uint32_t ranks,
                                  AllGather all_gather) {
  constexpr std::size_t kMostSent = 65536;  // the library refuses more, which needs no memory here
  const std::uint32_t bytes = c_size("local_data", mine.size());
  std::string received(bytes > kMostSent || ranks == UINT32_MAX ? 0 : bytes * ranks, '\0');
  const int code = smem_code(wait([&] { return all_gather(bytes, received); }));
  if (code != SMEM_OK) received.clear();
  return {code, nb::bytes(received.data(), received.size())};
}

}  // namespace

void bind_shm(nb::module_& module) {
  module.def(
      "shm_init",
      [](const std::string& url, std::uint32_t ranks, std::uint32_t rank, std::uint16_t device,
         nb::handle given) {
        smem_shm_config_t config = shm_config_of(given);
        return smem_code(wait(
            [&] { return smem_shm_init(c_text("store_url", url), ranks, rank, device, &config); }));
      },
      nb::sig("def shm_init(store_url: str, world_size: int, rank_id: int, "
              "device_id: int, config: object, /) -> int"));
  module.def(
      "shm_uninit", [](std::uint32_t flags) { wait([&] { smem_shm_uninit(flags); }); },
      nb::sig("def shm_uninit(flags: int, /) -> None"));
  module.def("shm_query_support_data_operation", smem_shm_query_support_data_operation);
  module.def(
      "shm_create",
      [](std::uint32_t id, std::uint32_t ranks, std::uint32_t rank, std::uint64_t bytes,
         std::uint32_t operations, std::uint32_t flags) {
        void* base = nullptr;
        smem_shm_data_op_type type;
        std::memcpy(&type, &operations, sizeof type);
        void* const space =
            wait([&] { return smem_shm_create(id, ranks, rank, bytes, type, flags, &base); });
        return std::tuple(handle_of(space), handle_of(base));
      },
      nb::sig("def shm_create(id: int, rank_size: int, rank_id: int, local_mem_size: "
              "int, data_op_type: int, flags: int, /) -> tuple[int, int]"));
  module.def(
      "shm_destroy",
      [](Handle space, std::uint32_t flags) {
        return smem_code(wait([&] { return smem_shm_destroy(pointer_of(space), flags); }));
      },
      nb::sig("def shm_destroy(space: int, flags: int, /) -> int"));
  module.def(
      "shm_set_extra_context",
      [](Handle space, const nb::bytes& context) {
        const std::uint32_t bytes = c_size("context", context.size());
        return smem_code(wait(
            [&] { return smem_shm_set_extra_context(pointer_of(space), context.c_str(), bytes); }));
      },
      nb::sig("def shm_set_extra_context(space: int, context: bytes, /) -> int"));
  module.def(
      "shm_get_extra_context",
      [](Handle space) {
        std::uint32_t bytes = 0;
        std::string context;
        int code =
            wait([&] { return smem_shm_get_extra_context(pointer_of(space), nullptr, 0, &bytes); });
        if (code == SMEM_OK) {
          context.resize(bytes);
          code = wait([&] {
            return smem_shm_get_extra_context(pointer_of(space), context.data(), bytes, &bytes);
          });
        }
        return std::tuple(smem_code(code), nb::bytes(context.data(), context.size()));
      },
      nb::sig("def shm_get_extra_context(space: int, /) -> tuple[int, bytes]"));
  module.def(
      "shm_get_global_rank",
      [](Handle space) {
        return wait([&] { return smem_shm_get_global_rank(pointer_of(space)); });
      },
      nb::sig("def shm_get_global_rank(space: int, /) -> int"));
  module.def(
      "shm_get_global_rank_size",
      [](Handle space) {
        return wait([&] { return smem_shm_get_global_rank_size(pointer_of(space)); });
      },
      nb::sig("def shm_get_global_rank_size(space: int, /) -> int"));
  module.def(
      "shm_control_barrier",
      [](Handle space) {
        return smem_code(wait([&] { return smem_shm_control_barrier(pointer_of(space)); }));
      },
      nb::sig("def shm_control_barrier(space: int, /) -> int"));
  module.def(
      "shm_control_allgather",
      [](Handle space, const nb::bytes& mine) {
        const std::uint32_t ranks =
            wait([&] { return smem_shm_get_global_rank_size(pointer_of(space)); });
        return gather(mine, ranks, [&](std::uint32_t bytes, std::string& received) {
          return smem_shm_control_allgather(pointer_of(space), mine.c_str(), bytes, received.data(),
                                            static_cast<std::uint32_t>(received.size()));
        });
      },
      nb::sig("def shm_control_allgather(space: int, local_data: bytes, /) -> "
              "tuple[int, bytes]"));
  module.def(
      "shm_subgroup_barrier",
      [](Handle space, const std::string& key, std::uint32_t ranks, std::uint32_t rank) {
        return smem_code(wait([&] {
          return smem_shm_subgroup_barrier(pointer_of(space), c_text("key", key), ranks, rank);
        }));
      },
      nb::sig("def shm_subgroup_barrier(space: int, key: str, rank_size: int, "
              "rank_id: int, /) -> int"));
  module.def(
      "shm_subgroup_allgather",
      [](Handle space, const std::string& key, std::uint32_t ranks, std::uint32_t rank,
         const nb::bytes& mine) {
        if (ranks > SMEM_WORLD_SIZE_MAX)
          throw nb::value_error(
              ("rank_size is " + std::to_string(ranks) + ", allowed are 1 to 1024").c_str());
        return gather(mine, ranks, [&](std::uint32_t bytes, std::string& received) {
          return smem_shm_subgroup_allgather(pointer_of(space), c_text("key", key), ranks, rank,
                                             mine.c_str(), bytes, received.data(),
                                             static_cast<std::uint32_t>(received.size()));
        });
      },
      nb::sig("def shm_subgroup_allgather(space: int, key: str, rank_size: int, "
              "rank_id: int, local_data: bytes, /) -> tuple[int, bytes]"));
  module.def(
      "shm_topology_can_reach",
      [](Handle space, std::uint32_t rank) {
        std::uint32_t ways = 0;
        const int code = smem_code(
            wait([&] { return smem_shm_topology_can_reach(pointer_of(space), rank, &ways); }));
        return std::tuple(code, ways);
      },
      nb::sig("def shm_topology_can_reach(space: int, remote_rank: int, /) -> "
              "tuple[int, int]"));
  module.def(
      "shm_atomic_alloc_value",
      [](Handle space, std::uint32_t limit) {
        std::uint32_t number = 0;
        const int code = smem_code(
            wait([&] { return smem_shm_atomic_alloc_value(pointer_of(space), limit, &number); }));
        return std::tuple(code, number);
      },
      nb::sig("def shm_atomic_alloc_value(space: int, limit: int, /) -> tuple[int, "
              "int]"));
  module.def(
      "shm_atomic_release_value",
      [](Handle space, std::int32_t number) {
        return smem_code(
            wait([&] { return smem_shm_atomic_release_value(pointer_of(space), number); }));
      },
      nb::sig("def shm_atomic_release_value(space: int, value: int, /) -> int"));
  module.def(
      "shm_register_exit",
      [](Handle space, nb::handle function) {
        const nb::object before = nb::borrow(exit_listener.get());
        exit_listener.set(function);
        const auto listener = function.is_none() ? nullptr : on_exit;
        const int code = wait([&] { return smem_shm_register_exit(pointer_of(space), listener); });
        if (code != SMEM_OK) exit_listener.set(before.is_valid() ? before : nb::none());
        return smem_code(code);
      },
      nb::arg(), nb::arg().none(),
      nb::sig("def shm_register_exit(space: int, function: Callable[[int], object] | "
              "None, /) -> int"));
  module.def(
      "shm_global_exit",
      [](Handle space, int status) {
        wait([&] { smem_shm_global_exit(pointer_of(space), status); });
      },
      nb::sig("def shm_global_exit(space: int, status: int, /) -> None"));
}

}  // namespace memspan::python
