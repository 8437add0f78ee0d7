// SPDX-License-Identifier: Apache-2.0
// MemFabric's Big Memory.
#include <memspan/pool.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <smem/host/smem_bm.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "c_text.h"
#include "calls.h"
#include "handles.h"
#include "modules.h"
#include "numbers.h"
#include "places.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

// A number as the enumeration that C takes; any may be given, and the library refuses wrong ones.
template <typename Enumeration>
Enumeration as(std::uint32_t number) {
  Enumeration value;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&value, &number, sizeof number);
  return value;
}

// Copies text into a field, or says that it is too long.
template <std::size_t room>
void fill(char (&field)[room], const char* name, const std::string& text) {
  if (text.size() >= room)
    throw nb::value_error((std::string(name) + " has " + std::to_string(text.size()) +
                           " characters, allowed are up to " + std::to_string(room - 1))
                              .c_str());
  std::memcpy(field, text.c_str(), text.size() + 1);
}

void fill(smem_tls_config& to, nb::handle from) {
  if (from.is_none()) return;
  to.tlsEnable = nb::cast<bool>(from.attr("enable"));
  const auto text = [&](const char* name) { return nb::cast<std::string>(from.attr(name)); };
  fill(to.caPath, "ca_path", text("ca_path"));
  fill(to.crlPath, "crl_path", text("crl_path"));
  fill(to.certPath, "cert_path", text("cert_path"));
  fill(to.keyPath, "key_path", text("key_path"));
  fill(to.keyPassPath, "key_pass_path", text("key_pass_path"));
  fill(to.packagePath, "package_path", text("package_path"));
  fill(to.decrypterLibPath, "decrypter_lib_path", text("decrypter_lib_path"));
}

// From the Python class of the same fields.
smem_bm_config_t bm_config_of(nb::handle from) {
  smem_bm_config_t config = {};
  const auto number = [&](const char* name) { return nb::cast<std::uint32_t>(from.attr(name)); };
  const auto flag = [&](const char* name) { return nb::cast<bool>(from.attr(name)); };
  config.initTimeout = number("init_timeout");
  config.createTimeout = number("create_timeout");
  config.controlOperationTimeout = number("operation_timeout");
  config.startConfigStoreServer = flag("start_store");
  config.startConfigStoreOnly = flag("start_store_only");
  config.dynamicWorldSize = flag("dynamic_world_size");
  config.unifiedAddressSpace = flag("unified_address_space");
  config.autoRanking = flag("auto_ranking");
  config.rankId = nb::cast<std::uint16_t>(from.attr("rank_id"));
  config.flags = number("flags");
  fill(config.hcomUrl, "nic", nb::cast<std::string>(from.attr("nic")));
  fill(config.hcomTlsConfig, from.attr("hcom_tls"));
  fill(config.storeTlsConfig, from.attr("store_tls"));
  return config;
}

smem_batch_copy_params params_of(const Numbers& sources, const Numbers& targets,
                                 const Numbers& sizes, std::size_t count) {
  if (count > sources.size() || count > targets.size() || count > sizes.size())
    throw nb::value_error(("count is " + std::to_string(count) + ", but there are " +
                           std::to_string(sources.size()) + " sources, " +
                           std::to_string(targets.size()) + " destinations and " +
                           std::to_string(sizes.size()) + " sizes")
                              .c_str());
  if (count > UINT32_MAX)
    throw nb::value_error(
        ("count is " + std::to_string(count) + ", allowed are up to 4294967295").c_str());
  return {sources.pointers(), targets.pointers(), sizes.data(), static_cast<std::uint32_t>(count)};
}

}  // namespace

void bind_bm(nb::module_& module) {
  module.def(
      "bm_init",
      [](const std::string& url, std::uint32_t ranks, std::uint16_t device, nb::handle given) {
        const smem_bm_config_t config = bm_config_of(given);
        return smem_code(
            wait([&] { return smem_bm_init(c_text("store_url", url), ranks, device, &config); }));
      },
      nb::sig("def bm_init(store_url: str, world_size: int, device_id: int, config: object, /) -> "
              "int"));
  module.def(
      "bm_uninit", [](std::uint32_t flags) { wait([&] { smem_bm_uninit(flags); }); },
      nb::sig("def bm_uninit(flags: int, /) -> None"));
  module.def("bm_get_rank_id", smem_bm_get_rank_id);
  module.def(
      "bm_create",
      [](std::uint32_t id, std::uint32_t members, std::uint32_t operations, std::uint64_t dram,
         std::uint64_t hbm, std::uint32_t flags) {
        return handle_of(wait([&] {
          return smem_bm_create(id, members, as<smem_bm_data_op_type>(operations), dram, hbm,
                                flags);
        }));
      },
      nb::sig("def bm_create(id: int, members: int, data_op_type: int, local_dram_size: int, "
              "local_hbm_size: int, flags: int, /) -> int"));
  module.def(
      "bm_create2",
      [](std::uint32_t id, std::uint64_t most_dram, std::uint64_t most_hbm, std::uint64_t dram,
         std::uint64_t hbm, std::uint32_t operations, std::uint32_t flags, const std::string& tag,
         const std::string& tag_operations, int descriptor) {
        smem_bm_create_option_t option = {};
        option.maxDramSize = most_dram;
        option.maxHbmSize = most_hbm;
        option.localDRAMSize = dram;
        option.localHBMSize = hbm;
        option.dataOpType = as<smem_bm_data_op_type>(operations);
        option.flags = flags;
        fill(option.tag, "tag", tag);
        fill(option.tagOpInfo, "tag_op_info", tag_operations);
        option.dramShmFd = descriptor;
        return handle_of(wait([&] { return smem_bm_create2(id, &option); }));
      },
      nb::sig("def bm_create2(id: int, max_dram_size: int, max_hbm_size: int, local_dram_size: "
              "int, local_hbm_size: int, data_op_type: int, flags: int, tag: str, tag_op_info: "
              "str, shm_fd: int, /) -> int"));
  module.def(
      "bm_destroy", [](Handle pool) { wait([&] { smem_bm_destroy(pointer_of(pool)); }); },
      nb::sig("def bm_destroy(pool: int, /) -> None"));
  module.def(
      "bm_join",
      [](Handle pool, std::uint32_t flags) {
        void* address = nullptr;
        const int code =
            smem_code(wait([&] { return smem_bm_join(pointer_of(pool), flags, &address); }));
        return std::tuple(code, handle_of(address));
      },
      nb::sig("def bm_join(pool: int, flags: int, /) -> tuple[int, int]"));
  module.def(
      "bm_leave",
      [](Handle pool, std::uint32_t flags) {
        return smem_code(wait([&] { return smem_bm_leave(pointer_of(pool), flags); }));
      },
      nb::sig("def bm_leave(pool: int, flags: int, /) -> int"));
  module.def(
      "pool_wait_members",
      [](Handle pool, std::uint32_t count, std::uint32_t timeout_ms) {
        return smem_code(
            wait([&] { return memspan_pool_wait_members(pointer_of(pool), count, timeout_ms); }));
      },
      nb::sig("def pool_wait_members(pool: int, count: int, timeout_ms: int, /) -> int"));
  module.def(
      "pool_wait_rank",
      [](Handle pool, std::uint32_t rank, std::uint32_t timeout_ms) {
        return smem_code(
            wait([&] { return memspan_pool_wait_rank(pointer_of(pool), rank, timeout_ms); }));
      },
      nb::sig("def pool_wait_rank(pool: int, rank: int, timeout_ms: int, /) -> int"));
  module.def(
      "bm_get_local_mem_size_by_mem_type",
      [](Handle pool, std::uint32_t type) {
        return wait([&] {
          return smem_bm_get_local_mem_size_by_mem_type(pointer_of(pool),
                                                        as<smem_bm_mem_type>(type));
        });
      },
      nb::sig("def bm_get_local_mem_size_by_mem_type(pool: int, mem_type: int, /) -> int"));
  module.def(
      "bm_ptr_by_mem_type",
      [](Handle pool, std::uint32_t type, std::uint16_t rank) {
        return handle_of(wait([&] {
          return smem_bm_ptr_by_mem_type(pointer_of(pool), as<smem_bm_mem_type>(type), rank);
        }));
      },
      nb::sig("def bm_ptr_by_mem_type(pool: int, mem_type: int, peer_rank: int, /) -> int"));
  module.def(
      "bm_get_rank_id_by_gva",
      [](Handle pool, Handle address) {
        return wait(
            [&] { return smem_bm_get_rank_id_by_gva(pointer_of(pool), pointer_of(address)); });
      },
      nb::sig("def bm_get_rank_id_by_gva(pool: int, gva: int, /) -> int"));
  module.def(
      "bm_copy",
      [](Handle pool, const Place& from, const Place& to, std::size_t bytes, std::uint32_t type,
         std::uint32_t flags) {
        smem_copy_params params = {from.get("src_ptr", bytes), to.get_writable("dst_ptr", bytes),
                                   bytes};
        // It may wait for a member that has not joined yet.
        return smem_code(wait([&] {
          return smem_bm_copy(pointer_of(pool), &params, as<smem_bm_copy_type>(type), flags);
        }));
      },
      nb::sig("def bm_copy(pool: int, src_ptr: int | Buffer | Array, dst_ptr: int | Buffer | "
              "Array, size: int, type: int, flags: int, /) -> int"));
  module.def(
      "bm_copy_batch",
      [](Handle pool, const Numbers& sources, const Numbers& targets, const Numbers& sizes,
         std::size_t count, std::uint32_t type, std::uint32_t flags) {
        smem_batch_copy_params params = params_of(sources, targets, sizes, count);
        return smem_code(wait([&] {
          return smem_bm_copy_batch(pointer_of(pool), &params, as<smem_bm_copy_type>(type), flags);
        }));
      },
      nb::sig("def bm_copy_batch(pool: int, src_addrs: Sequence[int] | Buffer | Array, dst_addrs: "
              "Sequence[int] | Buffer | Array, sizes: Sequence[int] | Buffer | Array, count: int, "
              "type: int, flags: int, /) -> int"));
  module.def(
      "bm_copy_batch_partial_succeed",
      [](Handle pool, const Numbers& sources, const Numbers& targets, const Numbers& sizes,
         std::size_t count, std::uint32_t type, std::uint32_t flags) {
        smem_batch_copy_params params = params_of(sources, targets, sizes, count);
        std::vector<std::int32_t> results(count);
        smem_batch_copy_result result = {results.data(), params.batchSize};
        const int code = wait([&] {
          return smem_bm_copy_batch_partial_succeed(pointer_of(pool), &params,
                                                    as<smem_bm_copy_type>(type), flags, &result);
        });
        return std::tuple(smem_code(code, &results), results);
      },
      nb::sig("def bm_copy_batch_partial_succeed(pool: int, src_addrs: Sequence[int] | Buffer | "
              "Array, dst_addrs: Sequence[int] | Buffer | Array, sizes: Sequence[int] | Buffer | "
              "Array, count: int, type: int, flags: int, /) -> tuple[int, list[int]]"));
  module.def(
      "bm_wait",
      [](Handle pool) { return smem_code(wait([&] { return smem_bm_wait(pointer_of(pool)); })); },
      nb::sig("def bm_wait(pool: int, /) -> int"));
  module.def(
      "bm_register_user_mem",
      [](Handle pool, const Place& place, std::uint64_t bytes) {
        place.get_writable("addr", bytes);
        return smem_code(wait(
            [&] { return smem_bm_register_user_mem(pointer_of(pool), place.address(), bytes); }));
      },
      nb::sig(
          "def bm_register_user_mem(pool: int, addr: int | Buffer | Array, size: int, /) -> int"));
  module.def(
      "bm_unregister_user_mem",
      [](Handle pool, const Place& place) {
        return smem_code(
            wait([&] { return smem_bm_unregister_user_mem(pointer_of(pool), place.address()); }));
      },
      nb::sig("def bm_unregister_user_mem(pool: int, addr: int | Buffer | Array, /) -> int"));
}

}  // namespace memspan::python
