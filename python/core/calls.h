// SPDX-License-Identifier: Apache-2.0
// Calls of the library from Python. An error that would end the process (memspan/memspan.h) becomes
// an exception. So do error codes when the program asked for that.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "interpreter.h"

namespace memspan::python {

namespace nb = nanobind;

// What the library said instead of ending the process.
struct EndedCall {
  int reason;
  std::string message;
};

// While one lives, its thread is in a call of the library.
class InCall {
 public:
  InCall() : was_inside_(std::exchange(is_inside, true)) {}
  ~InCall() { is_inside = was_inside_; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  static thread_local bool is_inside;

 private:
  const bool was_inside_;  // a callback may call the library, too
};

// Runs `function`, which does not wait for other processes.
template <typename Function>
auto call(Function function) {
  const InCall in_call;
  return function();
}

// The same without the GIL: other threads of Python go on.
template <typename Function>
auto call_without_gil(Function function) {
  const WithoutGil without_gil;
  return call(function);
}

// Runs `function` without the GIL. An exception of a Python signal handler ends its wait and is
// thrown here.
template <typename Function>
auto wait(Function function) {
  if constexpr (std::is_void_v<decltype(function())>) {
    call_without_gil(function);
    raise_if_interrupted();
  } else {
    auto result = call_without_gil(function);
    raise_if_interrupted();
    return result;
  }
}

// Whether this process maps `pe`'s copy of a symmetric address, so that an access needs no other
// process.
bool is_mapped(const void* address, int pe);

// Runs `function`, which accesses `pe`'s copy of a symmetric word. It keeps the GIL if that copy is
// mapped.
template <typename Function>
auto access(const void* word, int pe, Function function) {
  return is_mapped(word, pe) ? call(function) : wait(function);
}

// Runs `function`, which moves `bytes` between this process and `pe`'s copy of a symmetric address.
// Copying a few bytes takes less time than releasing the GIL.
template <typename Function>
void move(std::size_t bytes, const void* symmetric, int pe, Function function) {
  constexpr std::size_t kWorthIt = std::size_t{64} << 10;
  if (bytes < kWorthIt)
    access(symmetric, pe, function);
  else
    wait(function);
}

// The result of functions of `shmem` that return a code: the code, or an exception with the text
// when shmem.errors.raise_on_error() asked for that.
int shmem_code(int code);
// The same for MemFabric's codes. `results`: of each element of a batch, for the exception.
int smem_code(int code, const std::vector<std::int32_t>* results = nullptr);
// Raises for MemFabric's code, whatever the program asked for.
[[noreturn]] void raise_smem(int code, const std::vector<std::int32_t>* results = nullptr);
// For NULL: raises when codes raise.
void on_null();

void set_raising(bool raises);
bool is_raising();

// Makes exceptions of the library's ends; once, when the module is loaded.
void bind_calls(nb::module_& module);

}  // namespace memspan::python
