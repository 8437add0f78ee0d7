// SPDX-License-Identifier: Apache-2.0
// Rank 0's stdin when ours is a terminal: a pipe that the launcher fills.
//
// The processes are not in the terminal's foreground group (each leads one of its own), so the
// kernel would stop the one that reads from it. A file or pipe is handed over as it is instead.
#pragma once

#include <string>

#include "core/fd.h"
#include "core/status.h"

namespace memspan::launcher {

// One thread at a time.
class TerminalInput {
 public:
  // `reader` receives the end for rank 0.
  static Result<TerminalInput> make(Fd& reader);

  bool is_open() const { return pipe_.is_valid(); }
  int pipe() const { return pipe_.get(); }
  // True: wait until the terminal can be read. False: until the pipe can be written.
  bool wants_terminal() const { return pending_.empty(); }
  // Reads from the terminal or writes to the pipe, whichever is due; never waits. Closes the pipe
  // when the terminal or rank 0 closed it. False while we are in the background and may not read.
  bool advance();

 private:
  explicit TerminalInput(Fd pipe) : pipe_(std::move(pipe)) {}
  Fd pipe_;
  std::string pending_;
};

}  // namespace memspan::launcher
