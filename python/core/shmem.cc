// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM's functions, as the Python module `shmem` wants them.
#include <memspan/memspan.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <shmem_api.h>

#include <cstring>
#include <optional>
#include <string>
#include <tuple>

#include "addresses.h"
#include "callbacks.h"
#include "calls.h"
#include "in_stream.h"
#include "modules.h"
#include "places.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

// ---- start and end

struct StartOptions {
  int rank;
  int ranks;
  std::uint64_t heap;
  std::string where;
  std::uint32_t engines;
  std::uint32_t timeouts[3];  // seconds: start, allocation, operations
};

// 0, or the code; *made is the library's own object.
int fill(const StartOptions& given, const char* where, shmem_init_attr_t** made) {
  const int code = shmem_set_attr(given.rank, given.ranks, given.heap, where, made);
  if (code != 0) return code;
  shmem_init_optional_attr_t& options = (*made)->option_attr;
  std::memcpy(&options.data_op_engine_type, &given.engines, sizeof given.engines);
  options.shm_init_timeout = given.timeouts[0];
  options.shm_create_timeout = given.timeouts[1];
  options.control_operation_timeout = given.timeouts[2];
  return 0;
}

int start(const StartOptions& given) {
  return shmem_code(wait([&] {
    shmem_init_attr_t* attributes = nullptr;
    const int code = fill(given, given.where.c_str(), &attributes);
    return code != 0 ? code : shmem_init_attr(attributes);
  }));
}

int start_by_id(const StartOptions& given, const nb::bytes& id) {
  shmem_uniqueid_t uid = {};
  if (id.size() != sizeof uid)
    throw nb::value_error(("a unique id has " + std::to_string(sizeof uid) + " bytes, not " +
                           std::to_string(id.size()))
                              .c_str());
  std::memcpy(&uid, id.c_str(), sizeof uid);
  return shmem_code(wait([&] {
    shmem_init_attr_t* attributes = nullptr;
    const int code = fill(given, nullptr, &attributes);
    return code != 0 ? code
                     : shmem_set_attr_uniqueid_args(given.rank, given.ranks, &uid, attributes);
  }));
}

nb::object make_unique_id() {
  shmem_uniqueid_t uid = {};
  if (shmem_code(wait([&] { return shmem_get_uniqueid(&uid); })) != 0) return nb::none();
  return nb::bytes(reinterpret_cast<const char*>(&uid), sizeof uid);
}

int finish() {
  const int code = wait([] { return shmem_finalize(); });
  forget_addresses();
  return code;
}

// ---- memory

nb::object allocate(std::size_t bytes, void* made) {
  if (made == nullptr && bytes != 0) on_null();
  return make_address(made, bytes);
}

nb::object malloc_(std::size_t size) {
  return allocate(size, wait([&] { return shmem_malloc(size); }));
}

nb::object calloc_(std::size_t count, std::size_t size) {
  return allocate(count * size, wait([&] { return shmem_calloc(count, size); }));
}

nb::object align(std::size_t alignment, std::size_t size) {
  return allocate(size, wait([&] { return shmem_align(alignment, size); }));
}

void free_(std::optional<Place> place) {
  if (!place) return;
  void* const base = place->get("ptr", 0);
  place.reset();  // its buffer is no use of the memory
  if (!is_allocation(base))
    throw nb::value_error(
        "ptr is not, or no longer, the beginning of memory of the symmetric heap");
  forget_address(base);  // before another thread may be given the same
  wait([&] { shmem_free(base); });
}

nb::object peer_address(const Place& place, int pe) {
  void* const local = place.get("ptr", 0);
  return make_peer_address(call([&] { return shmem_ptr(local, pe); }), local);
}

// ---- moving bytes

void put(const Place& to, const Place& from, std::size_t bytes, int pe) {
  void* const target = to.get("dst", bytes);
  void* const source = from.get("src", bytes);
  move(bytes, [&] { shmem_putmem(target, source, bytes, pe); });
}

void get(const Place& to, const Place& from, std::size_t bytes, int pe) {
  void* const target = to.get_writable("dst", bytes);
  void* const source = from.get("src", bytes);
  move(bytes, [&] { shmem_getmem(target, source, bytes, pe); });
}

void put_signal(const Place& to, const Place& from, std::size_t bytes, const Place& signal,
                std::int32_t value, int operation, int pe) {
  void* const target = to.get("dst", bytes);
  void* const source = from.get("src", bytes);
  void* const word = signal.get("sig", sizeof value);
  move(bytes, [&] { shmem_putmem_signal(target, source, bytes, word, value, operation, pe); });
}

// ---- in a stream's order

int put_in_stream(const Place& to, const Place& from, std::size_t bytes, int pe, Handle stream) {
  void* const target = stream == 0 ? to.get("dst", bytes) : to.get_lasting("dst");
  void* const source = stream == 0 ? from.get("src", bytes) : from.get_lasting("src");
  return in_stream(stream, [=] { shmem_putmem(target, source, bytes, pe); });
}

int get_in_stream(const Place& to, const Place& from, std::size_t bytes, int pe, Handle stream) {
  void* const target = stream == 0 ? to.get_writable("dst", bytes) : to.get_lasting("dst");
  void* const source = stream == 0 ? from.get("src", bytes) : from.get_lasting("src");
  return in_stream(stream, [=] { shmem_getmem(target, source, bytes, pe); });
}

// ---- teams

std::tuple<int, int> split_strided(int parent, int first, int stride, int size) {
  int made = SHMEM_TEAM_INVALID;
  const int code =
      wait([&] { return shmem_team_split_strided(parent, first, stride, size, &made); });
  return {code, made};
}

std::tuple<int, int, int> split_2d(int parent, int x_range) {
  int x = SHMEM_TEAM_INVALID, y = SHMEM_TEAM_INVALID;
  const int code = wait([&] { return shmem_team_split_2d(parent, x_range, &x, &y); });
  return {code, x, y};
}

std::tuple<int, int> team_config(int team) {
  shmem_team_config_t config = {};
  const int code = shmem_team_get_config(team, &config);
  return {code, config.num_contexts};
}

StartOptions options_of(int rank, int ranks, std::uint64_t heap, std::string where,
                        std::uint32_t engines,
                        std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> timeouts) {
  return {rank,    ranks,
          heap,    std::move(where),
          engines, {std::get<0>(timeouts), std::get<1>(timeouts), std::get<2>(timeouts)}};
}

// One element of a type, to and from a peer.
template <typename T, void (*put_one)(T*, const T, int), T (*get_one)(T*, int)>
void bind_element(nb::module_& module, const char* name) {
  module.def((std::string(name) + "_p").c_str(),
             [](const Place& to, T value, int pe) {
               T* const target = to.get<T>("dst", sizeof(T));
               call([&] { put_one(target, value, pe); });
             },
             "dst"_a, "value"_a, "pe"_a);
  module.def((std::string(name) + "_g").c_str(),
             [](const Place& from, int pe) {
               T* const source = from.get<T>("src", sizeof(T));
               return call([&] { return get_one(source, pe); });
             },
             "src"_a, "pe"_a);
}

}  // namespace

void bind_shmem(nb::module_& module) {
  module.def("init",
             [](int rank, int ranks, std::uint64_t heap, std::string where, std::uint32_t engines,
                std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> timeouts) {
               return start(options_of(rank, ranks, heap, std::move(where), engines, timeouts));
             });
  module.def("init_by_id",
             [](int rank, int ranks, std::uint64_t heap, const nb::bytes& id, std::uint32_t engines,
                std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> timeouts) {
               return start_by_id(options_of(rank, ranks, heap, "", engines, timeouts), id);
             });
  module.def("get_unique_id", make_unique_id);
  module.def("finalize", finish);
  module.def("init_status", [] { return shmem_init_status(); });
  module.def("global_exit", [](int status) { call([&] { shmem_global_exit(status); }); });
  module.def("set_conf_store_tls", [](bool enable, const std::string& text) {
    return shmem_code(
        shmem_set_conf_store_tls(enable, text.c_str(), static_cast<std::uint32_t>(text.size())));
  });
  module.def(
      "register_decrypt_handler",
      [](nb::handle function) {
        return shmem_code(shmem_register_decrypt_handler(set_decrypter(function)));
      },
      nb::arg().none());
  module.def(
      "set_conf_store_tls_key",
      [](const std::string& key, const std::string& password, nb::handle function) {
        return shmem_code(shmem_set_config_store_tls_key(
            key.c_str(), static_cast<std::uint32_t>(key.size()), password.c_str(),
            static_cast<std::uint32_t>(password.size()), set_decrypter(function)));
      },
      nb::arg(), nb::arg(), nb::arg().none());
  module.def(
      "set_extern_logger",
      [](nb::handle function) {
        const LogFunction log = set_logger(function);
        return shmem_code(wait([&] { return shmem_set_extern_logger(log); }));
      },
      nb::arg().none());
  module.def("set_log_level", [](int level) { return shmem_code(shmem_set_log_level(level)); });
  module.def(
      "mte_set_ub_params",
      [](std::uint64_t offset, std::uint32_t bytes, std::uint32_t event) {
        return shmem_code(shmem_mte_set_ub_params(offset, bytes, event));
      },
      "offset"_a, "size"_a, "event"_a,
      "A setting of Ascend hardware, without effect here. Returns 0.");
  module.def(
      "get_ffts_config", [] { return shmemx_get_ffts_config(); },
      "An int that kernels may be given.");
  module.def(
      "shmem_info_get_version",
      [] {
        int major = 0, minor = 0;
        shmem_info_get_version(&major, &minor);
        return std::tuple(major, minor);
      },
      "(major, minor) of the interface.");
  module.def(
      "shmem_info_get_name",
      [] {
        char name[SHMEM_MAX_NAME_LEN] = {};
        shmem_info_get_name(name);
        return std::string(name);
      },
      "The implementation's name.");

  module.def("malloc", malloc_, "size"_a);
  module.def("calloc", calloc_, "nmemb"_a, "size"_a);
  module.def("align", align, "alignment"_a, "size"_a);
  module.def("free", free_, "ptr"_a.none());
  module.def("ptr", peer_address, "ptr"_a, "peer"_a);

  module.def("heap_base", [] { return handle_of(memspan_heap_base()); });
  module.def("putmem_on_stream", put_in_stream, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "stream"_a = 0);
  module.def("getmem_on_stream", get_in_stream, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "stream"_a = 0);

  module.def("my_pe", [] { return shmem_my_pe(); });
  module.def("n_pes", [] { return shmem_n_pes(); });
  module.def(
      "team_my_pe", [](int team) { return shmem_team_my_pe(team); }, "team"_a);
  module.def(
      "team_n_pes", [](int team) { return shmem_team_n_pes(team); }, "team"_a);
  module.def("team_split_strided", split_strided);
  module.def("team_split_2d", split_2d);
  module.def(
      "team_translate_pe",
      [](int from, int pe, int to) { return shmem_team_translate_pe(from, pe, to); }, "src_team"_a,
      "src_pe"_a, "dest_team"_a);
  module.def(
      "team_destroy", [](int team) { wait([&] { shmem_team_destroy(team); }); }, "team"_a);
  module.def("team_config", team_config);
  module.def(
      "shmem_barrier", [](int team) { wait([&] { shmem_barrier(team); }); }, "team"_a = 0,
      "The same among a team.");

  module.def("shmem_putmem", put, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "``elem_size`` bytes from ``src`` here to ``dst`` at ``pe``; ``src`` may be used "
             "again at once, and the bytes are there after ``shmem_quiet`` or a barrier.");
  module.def("shmem_getmem", get, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "``elem_size`` bytes from ``src`` at ``pe`` to ``dst`` here; they are there on "
             "return.");
  module.def("shmem_putmem_signal", put_signal, "dst"_a, "src"_a, "elem_size"_a, "sig"_a,
             "signal"_a, "sig_op"_a, "pe"_a,
             "``shmem_putmem``, then the 32-bit word ``sig`` at ``pe`` is set to ``signal`` "
             "(``SignalOp`` 0) or grows by it (1): who sees that sees the bytes.");

  module.def("shmem_putmem_nbi", put, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "The same as ``shmem_putmem``, but ``src`` stays as it is until ``shmem_quiet``.");
  module.def("shmem_getmem_nbi", get, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "The same as ``shmem_getmem``, but the bytes are there after ``shmem_quiet``.");
  module.def("shmem_putmem_signal_nbi", put_signal, "dst"_a, "src"_a, "elem_size"_a, "sig"_a,
             "signal"_a, "sig_op"_a, "pe"_a,
             "The same; ``src`` stays as it is until ``shmem_quiet``.");
#define MEMSPAN_ELEMENT(name, type) \
  bind_element<type, aclshmem_##name##_p, aclshmem_##name##_g>(module, #name);
  MEMSPAN_ELEMENT(float, float)
  MEMSPAN_ELEMENT(double, double)
  MEMSPAN_ELEMENT(int8, std::int8_t)
  MEMSPAN_ELEMENT(int16, std::int16_t)
  MEMSPAN_ELEMENT(int32, std::int32_t)
  MEMSPAN_ELEMENT(int64, std::int64_t)
  MEMSPAN_ELEMENT(uint8, std::uint8_t)
  MEMSPAN_ELEMENT(uint16, std::uint16_t)
  MEMSPAN_ELEMENT(uint32, std::uint32_t)
  MEMSPAN_ELEMENT(uint64, std::uint64_t)
  MEMSPAN_ELEMENT(char, char)
#undef MEMSPAN_ELEMENT
}

}  // namespace memspan::python
