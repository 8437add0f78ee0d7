// SPDX-License-Identifier: Apache-2.0
// The launcher's own stdout or stderr, written without waiting for the reader. A reader that stops
// (a pager) does not keep the launcher from its signals.
#pragma once

#include <string>
#include <string_view>

namespace memspan::launcher {

// Does not own the descriptor. One thread at a time.
class OutputSink {
 public:
  explicit OutputSink(int target);

  int target() const { return target_; }
  void append(std::string_view bytes);
  // Writes what the reader takes now. A descriptor that others may have is not made non-blocking;
  // it is asked before each write, and what is written then fits.
  void flush();

  // Bytes that the reader has not taken.
  std::size_t pending() const { return pending_.size() - done_; }
  // Enough is pending: read no more from the processes.
  bool is_full() const { return pending() >= kMostPending; }
  // The errno of a write that failed (EPIPE: the reader is gone), else 0. Later data is dropped.
  int error() const { return error_; }

 private:
  static constexpr std::size_t kMostPending = std::size_t{256} << 10;
  std::size_t next_write() const;
  int target_;
  bool takes_all_ = false;  // a file
  int error_ = 0;
  std::string pending_;
  std::size_t done_ = 0;  // of pending_
};

}  // namespace memspan::launcher
