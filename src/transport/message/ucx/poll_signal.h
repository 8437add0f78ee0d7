// SPDX-License-Identifier: Apache-2.0
// A descriptor for poll and epoll whose state the owner sets: one end of a pair of sockets.
//
//   readable:      the other end has sent a byte
//   not writable:  this end's small buffer is full
//   hung up:       the other end is shut down
#pragma once

#include "core/fd.h"
#include "core/status.h"

namespace memspan::ucx {

// One thread at a time, except for descriptor().
class PollSignal {
 public:
  // Writable and not readable.
  static Result<PollSignal> create();

  int descriptor() const { return watched_.get(); }
  void set_readable(bool is_readable);
  void set_writable(bool is_writable);
  void hang_up();

 private:
  Fd watched_;
  Fd own_;
  bool is_readable_ = false;
  bool is_writable_ = true;
};

}  // namespace memspan::ucx
