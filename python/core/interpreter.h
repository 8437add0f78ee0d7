// SPDX-License-Identifier: Apache-2.0
// Calls that block, as Python's interpreter needs them. Python signal handlers (Ctrl-C) run during
// a wait and may end it. Threads that are in a wait when the interpreter ends stay there.
#pragma once

#include <memspan/memspan.h>
#include <nanobind/nanobind.h>

#include <utility>

namespace memspan::python {

namespace nb = nanobind;

// Releases the GIL while it lives. Waits of the library on this thread look for signals.
class WithoutGil {
 public:
  // With the GIL. Throws in a signal handler that runs during a wait of this thread: that call is
  // not complete.
  WithoutGil();
  // Never returns when the interpreter has ended meanwhile.
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  memspan_interrupt_handler_t interrupt_handler_before_;
  PyThreadState* state_;
};

// While one lives, the library calls Python on this thread: a callback, or a signal handler during
// a wait.
class CalledBack {
 public:
  CalledBack() : was_inside_(std::exchange(is_inside, true)) {}
  ~CalledBack() { is_inside = was_inside_; }
  CalledBack(const CalledBack&) = delete;
  CalledBack& operator=(const CalledBack&) = delete;
  static thread_local bool is_inside;

 private:
  const bool was_inside_;
};

// Throws what a signal handler raised during the last wait.
inline void raise_if_interrupted() {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

// Other threads leave their calls and do not return to Python. Waits for them for a second at most.
// With the GIL, once, at the interpreter's end.
void end_calls_of_other_threads();

// Once, when the module is loaded.
void prepare_interpreter();
// Throws ImportError in any interpreter but the process's first: callbacks and the library's one
// job belong to that.
void refuse_subinterpreters();

}  // namespace memspan::python
