// SPDX-License-Identifier: Apache-2.0
// The launcher's signals as a descriptor, so that they come one at a time and never in between.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "core/fd.h"
#include "core/status.h"

namespace memspan::launcher {

// "9 (Killed)"
std::string describe_signal(int number);

// Blocks the signals that the launcher handles, in the calling thread and those it starts. Signals
// that were ignored at its start (nohup) stay ignored, also in the processes.
class Signals {
 public:
  static Result<Signals> block();

  int descriptor() const { return descriptor_.get(); }
  // The mask as it was, for the processes.
  const sigset_t& original() const { return original_; }
  // The next pending signal, or nullopt.
  std::optional<int> next() const;

 private:
  Signals(Fd descriptor, const sigset_t& original)
      : descriptor_(std::move(descriptor)), original_(original) {}
  Fd descriptor_;
  sigset_t original_;
};

}  // namespace memspan::launcher
