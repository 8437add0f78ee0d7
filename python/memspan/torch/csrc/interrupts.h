// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, and other signals that Python has functions for, while its main thread waits for others.
#pragma once

#include <memspan/memspan.h>
#include <sys/syscall.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <chrono>

namespace memspan::tensors {

// How often a wait of ours looks for signals; the library has such a period, too.
inline constexpr auto kSignalPeriod = std::chrono::milliseconds(40);

// Not 0 when a signal's function raised, which throw_if_interrupted() throws. Needs no GIL.
inline int run_signal_functions() {
  if (syscall(SYS_gettid) != getpid() || !Py_IsInitialized()) return 0;  // Python's rule
  const pybind11::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0 ? 1 : 0;
}

inline void throw_if_interrupted() {
  if (syscall(SYS_gettid) != getpid() || !Py_IsInitialized()) return;
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
}

// While one lives, the library's waits on this thread run signals' functions, and end when one
// raises.
class Interruptible {
 public:
  Interruptible() : before_(memspan_set_thread_interrupt_handler(run_signal_functions)) {}
  ~Interruptible() { memspan_set_thread_interrupt_handler(before_); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const memspan_interrupt_handler_t before_;
};

}  // namespace memspan::tensors
