// SPDX-License-Identifier: Apache-2.0
// What a group of memspan says of a failure, as the exceptions of memspan.errors.
#pragma once

#include <memspan/memspan.h>
#include <smem/host/smem.h>
#include <torch/csrc/utils/pybind.h>

#include <cstdint>
#include <string>

namespace memspan::tensors {

namespace py = pybind11;

// While one lives, other threads of Python go on, if this one had the GIL.
class WithoutGil {
 public:
  WithoutGil() : state_(PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

// The exception `type` of memspan.errors; the caller need not have the GIL.
[[noreturn]] inline void raise(const char* type, const std::string& text, int code) {
  const py::gil_scoped_acquire gil;
  const py::object error = py::module_::import("memspan.errors").attr(type)(text, code);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw py::error_already_set();
}

// For a code other than SMEM_OK of a call; `doing` says what for, `failure` is its error text.
[[noreturn]] inline void raise_failure(std::int32_t code, const std::string& doing,
                                       const std::string& failure = memspan_last_error()) {
  const std::string text = doing + ": " + failure;
  if (code == SMEM_INVALID_PARAM) raise("InvalidArgument", text, code);
  if (code == SMEM_TIMEOUT) raise("Timeout", text, code);
  raise(code == SMEM_NOT_CONNECTED ? "PeerFailed" : "Error", text, code);
}

// Ctrl-C and other signals that Python has functions for, in its main thread.
inline void run_signal_handlers() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace memspan::tensors
