// SPDX-License-Identifier: Apache-2.0
// Notices on this host that a process of the job died, where no launcher watches: the keeper (the
// process that made the board) watches everybody else, everybody else watches the keeper. Deaths
// are noted on the board, which wakes whoever waits.
//
// A pidfd says that a process is gone, never that it is slow: one that is stopped or traced is
// not dead. It says nothing of a process that calls exec(): then its end of the connection closes.
#pragma once

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "core/wake_event.h"
#include "world/board.h"

namespace memspan {

// Runs one thread from start() to destruction, asleep in poll(2).
class FailureDetector {
 public:
  struct Watched {
    int rank;
    Fd pidfd;
    Fd connection;
  };
  // `board` must outlive it.
  static Result<std::unique_ptr<FailureDetector>> start(const Board& board,
                                                        std::vector<Watched> watched);
  ~FailureDetector();
  // In a child of fork(), which must not keep a connection open that its parent's exec() closes.
  // What else it has of this object stays as it is.
  void forget_in_child();
  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

 private:
  FailureDetector(const Board& board, std::vector<Watched> watched, WakeEvent wake);
  void run();

  const Board& board_;
  std::vector<Watched> watched_;
  WakeEvent wake_;
  std::thread thread_;
};

}  // namespace memspan
