// SPDX-License-Identifier: Apache-2.0
// MemFabric's common functions and the streams of the host device.
#include <memspan/memspan.h>
#include <memspan/stream.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <shmem_api.h>
#include <smem/host/smem.h>

#include <string>

#include "c_text.h"
#include "callbacks.h"
#include "calls.h"
#include "handles.h"
#include "modules.h"

namespace memspan::python {
namespace {

using namespace nb::literals;

int set_key(const std::string& key, const std::string& password, nb::handle function) {
  const std::uint32_t key_bytes = c_size("key", key.size());
  const std::uint32_t password_bytes = c_size("password", password.size());
  return smem_code(smem_set_config_store_tls_key(key.c_str(), key_bytes, password.c_str(),
                                                 password_bytes, set_decrypter(function)));
}

}  // namespace

void bind_smem(nb::module_& module) {
  module.def(
      "init", [](std::uint32_t flags) { return smem_code(smem_init(flags)); },
      nb::sig("def init(flags: int, /) -> int"));
  module.def("uninit", smem_uninit);
  module.def(
      "create_config_store",
      [](const std::string& url) {
        return smem_code(wait([&] { return smem_create_config_store(c_text("store_url", url)); }));
      },
      nb::sig("def create_config_store(url: str, /) -> int"));
  module.def(
      "destroy_config_store",
      [](const std::string& url) {
        return smem_code(wait([&] { return smem_destroy_config_store(c_text("store_url", url)); }));
      },
      nb::sig("def destroy_config_store(url: str, /) -> int"));
  module.def(
      "set_conf_store_tls",
      [](bool enable, const std::string& text) {
        return smem_code(
            smem_set_conf_store_tls(enable, text.c_str(), c_size("tls_info", text.size())));
      },
      nb::sig("def set_conf_store_tls(enable: bool, tls_info: str, /) -> int"));
  module.def("set_config_store_tls_key", set_key, nb::arg(), nb::arg(), nb::arg().none(),
             nb::sig("def set_config_store_tls_key(key: str, password: str, function: "
                     "Callable[[str], str] | None, /) -> int"));
  module.def(
      "set_extern_logger",
      [](nb::handle function) {
        // The interface refuses NULL; stderr gets the lines again all the same.
        if (function.is_none()) wait([] { return shmem_set_extern_logger(nullptr); });
        const LogFunction log = set_logger(function);
        return smem_code(wait([&] { return smem_set_extern_logger(log); }));
      },
      nb::arg().none(),
      nb::sig("def set_extern_logger(function: Callable[[int, str], object] | None, "
              "/) -> int"));
  module.def(
      "set_log_level", [](int level) { return smem_code(smem_set_log_level(level)); },
      nb::sig("def set_log_level(level: int, /) -> int"));
  module.def("get_last_err_msg", [] { return std::string(smem_get_last_err_msg()); });
  module.def("get_and_clear_last_err_msg",
             [] { return std::string(smem_get_and_clear_last_err_msg()); });
  module.def("get_last_err_code", smem_get_last_err_code);
  module.def(
      "get_error_string", [](int code) { return std::string(smem_get_error_string(code)); },
      nb::sig("def get_error_string(code: int, /) -> str"));

  module.def(
      "keep_failure",
      [](const std::string& call, int code, const std::string& message) {
        return smem_code(memspan_keep_failure(call.c_str(), code, message.c_str()));
      },
      nb::sig("def keep_failure(call: str, code: int, message: str, /) -> int"));

  module.def("stream_create", [] {
    memspan_stream_t stream = nullptr;
    smem_code(memspan_stream_create(&stream));
    return handle_of(stream);
  });
  module.def(
      "stream_destroy",
      [](Handle stream) {
        return smem_code(wait([&] { return memspan_stream_destroy(pointer_of(stream)); }));
      },
      nb::sig("def stream_destroy(stream: int, /) -> int"));
  module.def(
      "stream_query",
      [](Handle stream) {
        const int code = memspan_stream_query(pointer_of(stream));
        return code > 0 ? code : smem_code(code);
      },
      nb::sig("def stream_query(stream: int, /) -> int"));
  module.def(
      "stream_synchronize",
      [](Handle stream, std::uint32_t timeout_ms) {
        return smem_code(
            wait([&] { return memspan_stream_synchronize(pointer_of(stream), timeout_ms); }));
      },
      nb::sig("def stream_synchronize(stream: int, timeout_ms: int, /) -> int"));
}

}  // namespace memspan::python
