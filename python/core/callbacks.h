// SPDX-License-Identifier: Apache-2.0
// Python functions that the library calls, on any thread.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <utility>

#include "interpreter.h"

namespace memspan::python {

namespace nb = nanobind;

// Calls `function(arguments...)` with the GIL. Prints what it raises (sys.unraisablehook). Does
// nothing once the interpreter ends.
template <typename... Arguments>
nb::object call_back(PyObject* function, const char* whose, Arguments&&... arguments) {
  const CalledBack called_back;
  try {
    // Held while it runs, since another thread may set the next one.
    const nb::object held = nb::borrow(function);
    if (held.is_valid()) return held(std::forward<Arguments>(arguments)...);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable(whose);
  }
  return {};
}

// One function, kept until the next is set: the library may call it at any time.
class Callback {
 public:
  // None: no function. TypeError for what cannot be called. With the GIL.
  void set(nb::handle function) {
    if (!function.is_none() && !PyCallable_Check(function.ptr()))
      throw nb::type_error("a callback is a function, or None");
    PyObject* before = function_;
    function_ = function.is_none() ? nullptr : function.inc_ref().ptr();
    Py_XDECREF(before);
  }
  PyObject* get() const { return function_; }

 private:
  PyObject* function_ = nullptr;
};

// The functions that decrypt passwords and take the log, of which the library has one each,
// whichever interface they were given to. None: NULL.
using DecryptHandler = int (*)(const char*, std::size_t, char*, std::size_t&);
DecryptHandler set_decrypter(nb::handle function);
using LogFunction = void (*)(int, const char*);
LogFunction set_logger(nb::handle function);

// At the interpreter's end: nothing is called back any more. With the GIL.
void drop_callbacks();

}  // namespace memspan::python
