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

// Those after which a program usually ends.
bool ends_a_job(int number);

// Blocks the signals that the launcher handles, in the calling thread and those it starts. Signals
// that were ignored at its start (nohup) stay ignored, also in the processes.
class Signals {
 public:
  static Result<Signals> block();

  int descriptor() const { return descriptor_.get(); }
  // The next pending signal, or nullopt.
  std::optional<int> next() const;

 private:
  explicit Signals(Fd descriptor) : descriptor_(std::move(descriptor)) {}
  Fd descriptor_;
};

}  // namespace memspan::launcher
