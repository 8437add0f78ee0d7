// SPDX-License-Identifier: Apache-2.0
#include "calls.h"
#include "in_lines.h"
#include "names_in_python.h"

#include <memspan/memspan.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <smem/host/smem.h>

#include <atomic>
#include <exception>
#include <string_view>

namespace memspan::python {

thread_local bool InCall::is_inside = false;

namespace {

std::atomic<bool> raises_codes{false};
constexpr int kMallocFailed = -8;  // SHMEM_MALLOC_FAILED

// Other callers of the library in this process, which know no exceptions, end as ever.
void on_end(const char* call, int reason, const char* message) {
  if (InCall::is_inside) throw EndedCall{reason, std::string(call) + ": " + message};
}

// The exception `name` of memspan.errors.
void raise(const char* name, const std::string& message, int code,
           const std::vector<std::int32_t>* results = nullptr) {
  nb::object type = nb::module_::import_("memspan.errors").attr(name);
  nb::object error = type(message, code);
  if (results != nullptr) error.attr("results") = nb::cast(*results);
  PyErr_SetObject(type.ptr(), error.ptr());
}

const char* name_of_reason(int reason) {
  switch (reason) {
    case MEMSPAN_END_MISTAKE:
      return "InvalidArgument";
    case MEMSPAN_END_PEER_FAILED:
      return "PeerFailed";
    case MEMSPAN_END_TIMEOUT:
      return "Timeout";
    case MEMSPAN_END_OUT_OF_MEMORY:
      return "OutOfMemory";
    default:
      return "Error";
  }
}

int code_of_reason(int reason) {
  constexpr int kInvalidParam = -1, kInner = -4, kTimeout = -7;
  if (reason == MEMSPAN_END_MISTAKE) return kInvalidParam;
  if (reason == MEMSPAN_END_OUT_OF_MEMORY) return kMallocFailed;
  return reason == MEMSPAN_END_TIMEOUT ? kTimeout : kInner;
}

const char* name_of_shmem_code(int code) {
  constexpr int kInvalidParam = -1, kInvalidValue = -2, kTimeout = -7;
  if (code == kInvalidParam || code == kInvalidValue) return "InvalidArgument";
  if (code == kMallocFailed) return "OutOfMemory";
  return code == kTimeout ? "Timeout" : "Error";
}

const char* name_of_smem_code(int code) {
  if (code == SMEM_INVALID_PARAM) return "InvalidArgument";
  if (code == SMEM_TIMEOUT) return "Timeout";
  if (code == SMEM_MALLOC_FAILED) return "OutOfMemory";
  return code == SMEM_NOT_CONNECTED ? "PeerFailed" : "Error";
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const EndedCall& ended) {
    if (PyErr_Occurred() != nullptr) return;  // a signal's function ended it, and raised that
    raise(name_of_reason(ended.reason), ended.message, code_of_reason(ended.reason));
  }
}

}  // namespace

int shmem_code(int code) {
  if (code == 0 || !is_raising()) return code;
  raise(name_of_shmem_code(code), memspan_last_error(), code);
  throw nb::python_error();
}

int smem_code(int code, const std::vector<std::int32_t>* results) {
  if (code == SMEM_OK || !is_raising()) return code;
  raise_smem(code, results);
}

void raise_smem(int code, const std::vector<std::int32_t>* results) {
  raise(name_of_smem_code(code), smem_get_last_err_msg(), code, results);
  throw nb::python_error();
}

void on_null() {
  if (!is_raising()) return;
  constexpr int kInner = -4;
  raise("Error", memspan_last_error(), kInner);
  throw nb::python_error();
}

void set_raising(bool raises) {
  raises_codes.store(raises, std::memory_order_relaxed);
}

bool is_raising() {
  return raises_codes.load(std::memory_order_relaxed);
}

void bind_calls(nb::module_& module) {
  nb::register_exception_translator(translate);
  memspan_set_end_handler(on_end);
  memspan_set_name_handler(name_in_python);
  module.def("raise_on_error", set_raising, nb::arg("raises"),
             in_lines("Whether functions that give a code or None raise an exception instead when "
                      "they fail, from now on, in all packages and threads.")
                 .c_str());
  module.def("raises_on_error", is_raising, "Whether they do.");
  module.def(
      "last_error", [] { return std::string(memspan_last_error()); },
      "Why this thread's last call that failed did so, in a sentence; \"\" before the first.");
}

}  // namespace memspan::python
