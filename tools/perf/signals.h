// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP while a job runs: the job gets them, and they end us afterwards.
#pragma once

#include <csignal>
#include <utility>

#include "core/fd.h"
#include "core/status.h"

namespace memspan::perf {

// Blocks those signals that would end this process; what comes can be read from a descriptor. When
// it is destroyed, the signals are as they were before, and the first that came ends the process.
// One at a time; one thread.
class ForwardedSignals {
 public:
  // kSystem: there is no descriptor.
  static Result<ForwardedSignals> block();
  ForwardedSignals(ForwardedSignals&& other) noexcept;
  ForwardedSignals& operator=(ForwardedSignals&&) = delete;
  ~ForwardedSignals();

  int descriptor() const { return descriptor_.get(); }
  // The mask before this: for processes that are started.
  const sigset_t& original() const { return original_; }
  // The first that came; 0: none.
  int first() const { return first_; }
  // Forwards the received signals to `process`, except a terminal's, which it has already.
  void forward_to(pid_t process);

 private:
  ForwardedSignals(Fd descriptor, const sigset_t& original)
      : descriptor_(std::move(descriptor)), original_(original) {}
  Fd descriptor_;
  sigset_t original_;
  int first_ = 0;
};

}  // namespace memspan::perf
