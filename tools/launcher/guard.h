// SPDX-License-Identifier: Apache-2.0
// A small process that outlives the launcher's own death just long enough to kill the job.
//
// The processes die with the launcher by themselves (PR_SET_PDEATHSIG), but what *they* started
// would not: a wrapper script's program, for instance. The guard holds one end of a pipe, keeps
// the list of process groups, and kills them when the launcher's end closes.
#pragma once

#include <sys/types.h>

#include "core/fd.h"
#include "core/status.h"

namespace memspan::launcher {

// Owns the guard process; destruction ends it quietly. One thread at a time.
class Guard {
 public:
  // Forks: call it before anything starts a thread.
  static Result<Guard> start();
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  ~Guard();

  pid_t pid() const { return pid_; }
  void add(pid_t group);
  void remove(pid_t group);

 private:
  Guard(pid_t pid, Fd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  void send(pid_t word);
  pid_t pid_;
  Fd pipe_;
};

}  // namespace memspan::launcher
