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
#include "c_text.h"
#include "callbacks.h"
#include "calls.h"
#include "in_lines.h"
#include "in_stream.h"
#include "modules.h"
#include "places.h"
#include "typed.h"

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
    const int code = fill(given, c_text("ip_port", given.where), &attributes);
    return code != 0 ? code : shmem_init_attr(attributes);
  }));
}

int start_by_id(const StartOptions& given, const nb::bytes& id) {
  shmem_uniqueid_t uid = {};
  // Programs send it around in buffers that are longer.
  if (id.size() < sizeof uid)
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
  keep_viewed_memory();
  const int code = call_without_gil([] { return shmem_finalize(); });
  forget_addresses();
  // Another user of the library in this process may be in the job still.
  if (memspan_heap_base() == nullptr) own_kept_memory();
  raise_if_interrupted();
  return code;
}

// ---- memory, which is the host's: an Address has a buffer

nb::object allocate(std::size_t bytes, void* made) {
  if (made == nullptr && bytes != 0) on_null();
  return make_address(made, bytes);
}

nb::object malloc_(std::size_t size) {
  return allocate(size, wait([&] { return aclshmemx_malloc(size, HOST_SIDE); }));
}

nb::object calloc_(std::size_t count, std::size_t size) {
  return allocate(bytes_of(count, size),
                  wait([&] { return aclshmemx_calloc(count, size, HOST_SIDE); }));
}

nb::object align(std::size_t alignment, std::size_t size) {
  return allocate(size, wait([&] { return aclshmemx_align(alignment, size, HOST_SIDE); }));
}

void free_(std::optional<Place> place) {
  if (!place) return;
  void* const base = place->get("ptr", 0);
  place.reset();  // its buffer is no use of the memory
  if (!is_allocation(base))
    throw nb::value_error(
        "ptr is not, or no longer, the beginning of memory of the symmetric heap");
  const auto kind = side_of(base) == Side::kDevice ? DEVICE_SIDE : HOST_SIDE;
  forget_address(base);  // before another thread may be given the same
  wait([&] { aclshmemx_free(base, kind); });
}

nb::object peer_address(const Place& place, int pe) {
  void* const local = place.get("ptr", 0);
  return make_peer_address(call([&] { return shmem_ptr(local, pe); }), local);
}

// ---- moving bytes

void put(const Place& to, const Place& from, std::size_t bytes, int pe) {
  void* const target = to.get("dst", bytes);
  void* const source = from.get_local("src", bytes);
  move(bytes, target, pe, [&] { shmem_putmem(target, source, bytes, pe); });
}

void get(const Place& to, const Place& from, std::size_t bytes, int pe) {
  void* const target = to.get_local_writable("dst", bytes);
  void* const source = from.get("src", bytes);
  move(bytes, source, pe, [&] { shmem_getmem(target, source, bytes, pe); });
}

void put_signal(const Place& to, const Place& from, std::size_t bytes, const Place& signal,
                std::int32_t value, int operation, int pe) {
  void* const target = to.get("dst", bytes);
  void* const source = from.get_local("src", bytes);
  void* const word = signal.get("sig", sizeof value);
  move(bytes, target, pe,
       [&] { shmem_putmem_signal(target, source, bytes, word, value, operation, pe); });
}

// ---- in a stream's order

void check_lasting(const Place& to, const Place& from, Handle stream) {
  if (stream == 0) return;
  to.get_lasting("dst");
  from.get_lasting("src");
}

int put_in_stream(const Place& to, const Place& from, std::size_t bytes, int pe, Handle stream) {
  check_lasting(to, from, stream);
  void* const target = to.get("dst", bytes);
  void* const source = from.get_local("src", bytes);
  return in_stream(stream, [=] { shmem_putmem(target, source, bytes, pe); });
}

int get_in_stream(const Place& to, const Place& from, std::size_t bytes, int pe, Handle stream) {
  check_lasting(to, from, stream);
  void* const target = to.get_local_writable("dst", bytes);
  void* const source = from.get("src", bytes);
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

}  // namespace

void bind_shmem(nb::module_& module) {
  module.def(
      "init",
      [](int rank, int ranks, std::uint64_t heap, std::string where, std::uint32_t engines,
         std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> timeouts) {
        return start(options_of(rank, ranks, heap, std::move(where), engines, timeouts));
      },
      nb::sig("def init(my_rank: int, n_ranks: int, local_mem_size: int, ip_port: str, engines: "
              "int, timeouts: tuple[int, int, int], /) -> int"),
      "Starts. Time-outs in seconds: the start, allocations, operations. Returns 0 or a code.");
  module.def(
      "init_by_id",
      [](int rank, int ranks, std::uint64_t heap, const nb::bytes& id, std::uint32_t engines,
         std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> timeouts) {
        return start_by_id(options_of(rank, ranks, heap, "", engines, timeouts), id);
      },
      nb::sig("def init_by_id(my_rank: int, n_ranks: int, local_mem_size: int, unique_id: bytes, "
              "engines: int, timeouts: tuple[int, int, int], /) -> int"),
      "The same by a unique id.");
  module.def("get_unique_id", make_unique_id, nb::sig("def get_unique_id() -> bytes | None"),
             "What the others need to find this process; None when that fails.");
  module.def("finalize", finish, "Ends. Returns 0 or a code.");
  module.def(
      "init_status", [] { return shmem_init_status(); }, "How far the start is, ``InitStatus``.");
  module.def(
      "global_exit", [](int status) { call([&] { shmem_global_exit(status); }); },
      nb::sig("def global_exit(status: int, /) -> None"), "Ends every process of the job.");
  module.def(
      "set_conf_store_tls",
      [](bool enable, const std::string& text) {
        const std::uint32_t bytes = c_size("tls_info", text.size());
        return shmem_code(
            call([&] { return shmem_set_conf_store_tls(enable, text.c_str(), bytes); }));
      },
      nb::sig("def set_conf_store_tls(enable: bool, tls_info: str, /) -> int"),
      "How the store is protected. Returns 0 or a code.");
  module.def(
      "register_decrypt_handler",
      [](nb::handle function) {
        return shmem_code(shmem_register_decrypt_handler(set_decrypter(function)));
      },
      nb::arg().none(),
      nb::sig("def register_decrypt_handler(function: Callable[[str], str] | None, /) -> int"),
      "What decrypts the password of the TLS key. Returns 0 or a code.");
  module.def(
      "set_conf_store_tls_key",
      [](const std::string& key, const std::string& password, nb::handle function) {
        const std::uint32_t key_bytes = c_size("key", key.size());
        const std::uint32_t password_bytes = c_size("password", password.size());
        const auto decrypter = set_decrypter(function);
        return shmem_code(call([&] {
          return shmem_set_config_store_tls_key(key.c_str(), key_bytes, password.c_str(),
                                                password_bytes, decrypter);
        }));
      },
      nb::arg(), nb::arg(), nb::arg().none(),
      nb::sig("def set_conf_store_tls_key(key: str, password: str, function: Callable[[str], str] "
              "| None, /) -> int"),
      "The TLS key, its password, and what decrypts that. Returns 0 or a code.");
  module.def(
      "set_extern_logger",
      [](nb::handle function) {
        const LogFunction log = set_logger(function);
        return shmem_code(wait([&] { return shmem_set_extern_logger(log); }));
      },
      nb::arg().none(),
      nb::sig("def set_extern_logger(function: Callable[[int, str], object] | None, /) -> int"),
      "What takes the log; None: stderr. Returns 0 or a code.");
  module.def(
      "set_log_level",
      [](int level) { return shmem_code(call([&] { return shmem_set_log_level(level); })); },
      nb::sig("def set_log_level(level: int, /) -> int"),
      "0 debug to 4 fatal. Returns 0 or a code.");
  module.def(
      "mte_set_ub_params",
      [](std::uint64_t offset, std::uint32_t bytes, std::uint32_t event) {
        return shmem_code(shmem_mte_set_ub_params(offset, bytes, event));
      },
      "offset"_a, "size"_a, "event"_a,
      in_lines("A setting of Ascend hardware (bytes, and an event's number), without effect here. "
               "Returns 0.")
          .c_str());
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

  module.def("malloc", malloc_, "size"_a, nb::sig("def malloc(size: int) -> Address | None"),
             "``size`` bytes of the symmetric heap; None when there are none.");
  module.def("calloc", calloc_, "nmemb"_a, "size"_a,
             nb::sig("def calloc(nmemb: int, size: int) -> Address | None"),
             "``nmemb * size`` bytes of zeros.");
  module.def("align", align, "alignment"_a, "size"_a,
             nb::sig("def align(alignment: int, size: int) -> Address | None"),
             "``size`` bytes at a multiple of a power of two.");
  module.def("free", free_, "ptr"_a.none(), "Gives back what one of these gave.");
  module.def("ptr", peer_address, "ptr"_a, "peer"_a,
             nb::sig("def ptr(ptr: int | Buffer | Array, peer: int) -> Address | None"),
             "Where the peer's copy can be used directly, or None.");

  module.def(
      "load",
      [](const Place& place, std::size_t bytes) {
        return nb::bytes(place.get_local("ivars", bytes), bytes);
      },
      "place"_a, "bytes"_a, "So many bytes as they are now.");
  module.def(
      "heap_base", [] { return handle_of(memspan_heap_base()); },
      "Where this process's symmetric heap begins; 0 in no job.");
  module.def("putmem_on_stream", put_in_stream, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "stream"_a = 0, "``shmem_putmem`` in the order of a stream. Returns 0 or a code.");
  module.def("getmem_on_stream", get_in_stream, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "stream"_a = 0, "``shmem_getmem`` in the order of a stream. Returns 0 or a code.");

  module.def(
      "my_pe", [] { return shmem_my_pe(); }, "This process's number; -1 in no job.");
  module.def(
      "n_pes", [] { return shmem_n_pes(); }, "How many processes there are; -1 in no job.");
  module.def(
      "team_my_pe", [](int team) { return shmem_team_my_pe(team); }, "team"_a,
      "This process's number in the team; -1 when it has none.");
  module.def(
      "team_n_pes", [](int team) { return shmem_team_n_pes(team); }, "team"_a,
      "How many are in the team; -1 for no team.");
  module.def("team_split_strided", split_strided,
             nb::sig("def team_split_strided(parent: int, start: int, stride: int, size: int, /) "
                     "-> tuple[int, int]"),
             "(code, team).");
  module.def("team_split_2d", split_2d,
             nb::sig("def team_split_2d(parent: int, x_range: int, /) -> tuple[int, int, int]"),
             "(code, team of the row, team of the column).");
  module.def(
      "team_translate_pe",
      [](int from, int pe, int to) { return shmem_team_translate_pe(from, pe, to); }, "src_team"_a,
      "src_pe"_a, "dest_team"_a, "The number in another team; -1 when there is none.");
  module.def(
      "team_destroy", [](int team) { wait([&] { shmem_team_destroy(team); }); }, "team"_a,
      "Ends a team.");
  module.def("team_config", team_config,
             nb::sig("def team_config(team: int, /) -> tuple[int, int]"),
             "(code, number of contexts).");
  module.def(
      "shmem_barrier", [](int team) { wait([&] { shmem_barrier(team); }); }, "team"_a = 0,
      in_lines("Until all of the team are here, and all that they put before is there. All of the "
               "team call it. Raises PeerFailed when one of them died.")
          .c_str());

  module.def(
      "shmem_putmem", put, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
      in_lines("``elem_size`` bytes from ``src`` here to ``dst`` at ``pe``; ``src`` may be used "
               "again at once, and the bytes are there after ``shmem_quiet`` or a barrier.")
          .c_str());
  module.def(
      "shmem_getmem", get, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
      "``elem_size`` bytes from ``src`` at ``pe`` to ``dst`` here; they are there on return.");
  module.def("shmem_putmem_signal", put_signal, "dst"_a, "src"_a, "elem_size"_a, "sig"_a,
             "signal"_a, "sig_op"_a, "pe"_a,
             in_lines("``shmem_putmem``, then the 32-bit word ``sig`` at ``pe`` is set to "
                      "``signal`` (``SignalOp`` 0) or grows by it (1): who sees that sees the "
                      "bytes. ValueError for another ``sig_op``.")
                 .c_str());

  module.def("shmem_putmem_nbi", put, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "The same as ``shmem_putmem``, but ``src`` stays as it is until ``shmem_quiet``.");
  module.def("shmem_getmem_nbi", get, "dst"_a, "src"_a, "elem_size"_a, "pe"_a,
             "The same as ``shmem_getmem``, but the bytes are there after ``shmem_quiet``.");
  module.def(
      "shmem_putmem_signal_nbi", put_signal, "dst"_a, "src"_a, "elem_size"_a, "sig"_a, "signal"_a,
      "sig_op"_a, "pe"_a,
      "The same as ``shmem_putmem_signal``, but ``src`` stays as it is until ``shmem_quiet``.");
}

// CANN SHMEM's: the word has 32 bits.
void bind_sized_signals(nb::module_& module) {
  for (const std::size_t bits : {8, 16, 32, 64, 128}) {
    const std::size_t bytes = bits / 8;
    const std::string elements =
        "``nelems`` elements of " + bytes_in_words(bytes) +
        " each from ``source`` here to ``dest`` at ``pe``, then the 32-bit word ``sig`` there is "
        "set to ``signal`` (``SignalOp`` 0) or grows by it (1): who sees that sees them. ";
    const auto function = [bytes](const Place& to, const Place& from, std::size_t count,
                                  const Place& signal, std::int32_t value, int operation, int pe) {
      const std::size_t size = bytes_of(count, bytes);
      to.get("dest", size);
      from.get("source", size);
      put_signal(to, from, size, signal, value, operation, pe);
    };
    const auto bind = [&](const std::string& name, const char* until) {
      def_typed(module, name, elements + until, function, "dest"_a, "source"_a, "nelems"_a, "sig"_a,
                "signal"_a, "sig_op"_a, "pe"_a);
      module.attr(("aclshmemx_" + name).c_str()) = module.attr(("shmem_" + name).c_str());
    };
    const std::string name = "put" + std::to_string(bits) + "_signal";
    bind(name, "``source`` may be used again at once.");
    bind(name + "_nbi", "``source`` stays as it is until ``shmem_quiet``.");
  }
}

}  // namespace memspan::python
