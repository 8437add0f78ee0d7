// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <cxxabi.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace memspan::python {

thread_local bool CalledBack::is_inside = false;

namespace {

constexpr auto kPatienceAtExit = std::chrono::seconds(1);

thread_local bool runs_signal_functions = false;
std::atomic<int> waiting_threads{0};
std::atomic<bool> is_ending{false};
std::thread::id ending_thread;  // written before is_ending

bool must_not_return() {
  return is_ending.load(std::memory_order_acquire) && std::this_thread::get_id() != ending_thread;
}

// Python signal handlers run in the main thread only.
bool is_main_thread() {
  return syscall(SYS_gettid) == getpid();
}

// Tells the library whether this thread's wait is to end (memspan_set_thread_interrupt_handler).
int on_wait() {
  if (must_not_return()) return 1;
  if (!is_main_thread() || !Py_IsInitialized()) return 0;
  const nb::gil_scoped_acquire held;
  const CalledBack called_back;
  runs_signal_functions = true;
  const bool has_raised = PyErr_CheckSignals() != 0;  // kept for raise_if_interrupted()
  runs_signal_functions = false;
  return has_raised ? 1 : 0;
}

[[noreturn]] void stay_here() {
  for (;;) pause();
}

// Python ends threads that ask for the GIL too late by pthread_exit(), which unwinds through
// frames that cannot be unwound. They stay here instead, until the process ends.
void take_gil(PyThreadState* state) {
  if (must_not_return()) stay_here();
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    stay_here();
  }
}

void refuse_in_signal_functions() {
  if (!runs_signal_functions) return;
  PyErr_SetString(PyExc_RuntimeError,
                  "called in a signal's function while this thread waits in another call of "
                  "memspan; let the function raise an exception, or set a flag");
  throw nb::python_error();
}

}  // namespace

WithoutGil::WithoutGil() {
  refuse_in_signal_functions();
  state_ = PyEval_SaveThread();
  if (must_not_return()) stay_here();
  waiting_threads.fetch_add(1, std::memory_order_relaxed);
  interrupt_handler_before_ = memspan_set_thread_interrupt_handler(on_wait);
}

WithoutGil::~WithoutGil() {
  memspan_set_thread_interrupt_handler(interrupt_handler_before_);
  waiting_threads.fetch_sub(1, std::memory_order_release);
  take_gil(state_);
}

void end_calls_of_other_threads() {
  ending_thread = std::this_thread::get_id();
  is_ending.store(true, std::memory_order_release);
  const nb::gil_scoped_release released;
  const auto latest = std::chrono::steady_clock::now() + kPatienceAtExit;
  while (waiting_threads.load(std::memory_order_acquire) > 0 &&
         std::chrono::steady_clock::now() < latest)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void prepare_interpreter() {
  // A child of fork() has none of the other threads.
  pthread_atfork(nullptr, nullptr, [] { waiting_threads.store(0, std::memory_order_relaxed); });
}

void refuse_subinterpreters() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return;
  throw nb::import_error(
      "memspan cannot be imported in a sub-interpreter: a process has one job, whose callbacks "
      "belong to the main interpreter; use threads or processes");
}

}  // namespace memspan::python
