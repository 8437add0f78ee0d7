// SPDX-License-Identifier: Apache-2.0
// --label: one process's stdout or stderr, passed on as whole lines with "[rank] " in front.
#pragma once

#include <string>

#include "core/fd.h"
#include "core/status.h"

namespace memspan::launcher {

// Owns the reading end of a pipe. One thread at a time; as one thread serves all of them, lines
// never mix.
class LabelledOutput {
 public:
  // `writer` receives the end for the process. Lines go to `target`, 1 or 2.
  static Result<LabelledOutput> make(int rank, int target, Fd& writer);

  int descriptor() const { return pipe_.get(); }
  bool is_open() const { return pipe_.is_valid(); }

  // Passes on all whole lines that are there now; never waits for the process. Closes the pipe at
  // its end, or when nobody reads the launcher's output any more: the process then gets EPIPE, as
  // it would without --label.
  void drain();
  // Drains, then passes on a last line without an end, and closes.
  void finish();

 private:
  LabelledOutput(int rank, int target, Fd pipe);
  void take(const char* bytes, std::size_t count);
  void end_line();
  void flush();
  int target_;
  Fd pipe_;
  std::string label_;
  std::string line_;   // what has come of a line so far
  std::string ready_;  // labelled lines on their way out
};

}  // namespace memspan::launcher
