// SPDX-License-Identifier: Apache-2.0
// The standard streams of an agent, which are pipes whose other ends it has itself: what its
// processes and it print becomes messages, and messages become rank 0's input. Flow is bounded by
// kWindowBytes in both directions.
#pragma once

#include <algorithm>
#include <string>

#include "core/fd.h"
#include "core/status.h"
#include "launcher/message_channel.h"

namespace memspan::launcher {

// stdout or stderr. One thread.
class AgentOutput {
 public:
  // From now on `stream` (1 or 2) is the pipe.
  static Result<AgentOutput> make(int stream);

  int descriptor() const { return reader_.get(); }
  bool has_window() const { return on_its_way_ < kWindowBytes; }
  // The launcher has passed on so many bytes.
  void take(std::size_t bytes) { on_its_way_ -= std::min(bytes, on_its_way_); }
  // Sends available output within the window. True when nothing is left.
  bool pass_on(MessageChannel& channel);

 private:
  AgentOutput(int stream, Fd reader) : stream_(stream), reader_(std::move(reader)) {}
  int stream_;
  Fd reader_;
  std::size_t on_its_way_ = 0;
};

// stdin. One thread.
class AgentInput {
 public:
  // From now on stdin is the pipe, until rank 0 has it; then rank 0's end closes it.
  Status open();
  // stdin is /dev/null.
  static void close_own_end();

  int descriptor() const { return pipe_.get(); }
  bool wants_to_write() const { return pipe_.is_valid() && !pending_.empty(); }
  // An empty text is the end.
  void append(const std::string& text);
  // Writes, and reports how much has been passed on, or dropped without a reader.
  void pass_on(MessageChannel& channel);

 private:
  Fd pipe_;
  std::string pending_;
  bool is_ended_ = false;
};

}  // namespace memspan::launcher
