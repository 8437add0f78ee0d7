// SPDX-License-Identifier: Apache-2.0
// What Python's interpreter asks of calls that wait: signals' functions (Ctrl-C) run meanwhile and
// may end the wait, and threads that are in such a call when the interpreter ends stay there.
#pragma once

#include <memspan/memspan.h>
#include <nanobind/nanobind.h>

namespace memspan::python {

namespace nb = nanobind;

// While one lives, other threads of Python go on, and the library asks for signals when it waits
// on this one.
class WithoutGil {
 public:
  // With the GIL. Throws in a signal's function that runs while this thread waits already: what
  // that waits for is half done.
  WithoutGil();
  // Never returns when the interpreter has ended meanwhile.
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  memspan_interrupt_handler_t interrupt_handler_before_;
  PyThreadState* state_;
};

// Throws what a signal's function raised during the last wait.
inline void raise_if_interrupted() {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

// Other threads than this one leave their calls and do not come back to Python; returns when they
// have, or have not in a second. With the GIL, once, at the interpreter's end.
void end_calls_of_other_threads();

// Once, when the module is loaded.
void prepare_interpreter();
// Throws ImportError in any interpreter but the process's first: callbacks and the library's one
// job belong to that.
void refuse_subinterpreters();

}  // namespace memspan::python
