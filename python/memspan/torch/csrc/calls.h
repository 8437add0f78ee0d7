// SPDX-License-Identifier: Apache-2.0
// Calls of the library from what stands on PyTorch: what would end the process (memspan/memspan.h)
// becomes an exception, a ValueError for mistakes and a RuntimeError for the rest.
#pragma once

#include <c10/util/Exception.h>
#include <memspan/memspan.h>

namespace memspan::tensors {

// While one lives, its thread is in a call of the library. memspan._core has such a thing of its
// own, for the same process: the library asks this one first.
class InCall {
 public:
  InCall() : before_(memspan_set_thread_end_handler(raise)) {}
  ~InCall() { memspan_set_thread_end_handler(before_); }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  static void raise(const char* call, int reason, const char* message) {
    TORCH_CHECK_VALUE(reason != MEMSPAN_END_MISTAKE, call, ": ", message);
    TORCH_CHECK(false, call, ": ", message);
  }

  const memspan_end_handler_t before_;
};

// Runs `function`, which calls the library.
template <typename Function>
auto call(Function function) {
  const InCall in_call;
  return function();
}

}  // namespace memspan::tensors
