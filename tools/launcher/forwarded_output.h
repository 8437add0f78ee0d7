// SPDX-License-Identifier: Apache-2.0
// What comes out of one pipe or pseudo-terminal of the processes, on its way to an OutputSink; with
// --label as whole lines with "[rank] " in front.
#pragma once

#include <string>

#include "core/fd.h"
#include "launcher/output_sink.h"
#include "launcher/watch.h"

namespace memspan::launcher {

// Owns the reading end, which must not wait. One thread at a time; as one thread serves all of
// them, lines never mix.
class ForwardedOutput {
 public:
  // An empty label: bytes are passed on as they come. The sink outlives this.
  ForwardedOutput(std::string label, OutputSink& sink, Fd reader);

  int descriptor() const { return reader_.get(); }
  bool is_open() const { return reader_.is_valid(); }
  // It watches the reading end, and stops when this closes it.
  Watch& watch() { return watch_; }

  // Passes on a bounded part of the available output; never waits for a process. Closes at the end
  // of the output.
  void drain();
  // For a process that has ended: passes on all that it left, whatever the sink's reader takes.
  void finish();
  // Ends the label's last line, even without an end of its own, and closes.
  void close();

 private:
  void pass_on(std::size_t most);
  void take(std::string_view bytes);
  void end_line();
  std::string label_;
  OutputSink* sink_;
  Fd reader_;
  Watch watch_;
  std::string line_;  // what has come of a line so far
};

}  // namespace memspan::launcher
