// SPDX-License-Identifier: Apache-2.0
// Functions of Python that the library calls, on any of its threads.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace memspan::python {

namespace nb = nanobind;

// Calls `function(arguments...)` with the GIL; what it raises is printed as Python prints what
// nobody can catch. Nothing once the interpreter ends.
template <typename... Arguments>
nb::object call_back(PyObject* function, const char* whose, Arguments&&... arguments) {
  try {
    if (function != nullptr) return nb::handle(function)(std::forward<Arguments>(arguments)...);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable(whose);
  }
  return {};
}

// One function, kept until the next is set: a callback may come at any time.
class Callback {
 public:
  // None: no function. With the GIL.
  void set(nb::handle function) {
    PyObject* before = function_;
    function_ = function.is_none() ? nullptr : function.inc_ref().ptr();
    Py_XDECREF(before);
  }
  PyObject* get() const { return function_; }

 private:
  PyObject* function_ = nullptr;
};

// What handlers that decrypt do with `function(cipher) -> str`.
inline int decrypt_by(PyObject* function, const char* cipher, std::size_t bytes, char* plain,
                      std::size_t& room) {
  const nb::gil_scoped_acquire held;
  const nb::object answer = call_back(function, "the decrypt handler", nb::str(cipher, bytes));
  std::string text;
  if (!answer.is_valid() || !nb::try_cast(answer, text) || text.size() >= room) return -1;
  std::memcpy(plain, text.c_str(), text.size() + 1);
  room = text.size();
  return 0;
}

}  // namespace memspan::python
