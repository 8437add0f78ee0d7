// SPDX-License-Identifier: Apache-2.0
// The processes of the job: started, reaped and signalled together.
//
// Each leads a process group, which gets the signals, so that a wrapper script and the program it
// runs are one. When its leader ends, the rest of a group is killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "launcher/guard.h"
#include "launcher/job.h"
#include "launcher/spawn.h"

namespace memspan::launcher {

// One process that has ended, as of wait(2).
struct Ending {
  int rank = 0;
  pid_t pid = 0;
  int wait_status = 0;
};

// One process that has been stopped by a signal, or continued.
struct Stop {
  int rank = 0;
  int number = 0;  // of the signal; 0: continued
};

// "0-2, 5": for messages.
std::string format_ranks(const std::vector<int>& ranks);

// One thread at a time. Destruction kills and reaps what still runs.
class Processes : NotCopyable {
 public:
  explicit Processes(Guard guard) : guard_(std::move(guard)) {}
  ~Processes();

  Status start(Spawner& spawner, int rank, const Start& start);
  // The ones that ended since the last call, without waiting.
  std::vector<Ending> reap();
  // The last stop or continuation of each since the last call, without waiting.
  std::vector<Stop> take_stops();
  // Everything that was started here and what it started in its groups. A signal that ends a job
  // also continues stopped processes.
  void signal_all(int number) const;
  // One process of these groups; another one that has the number by now gets no signal.
  void signal_one(pid_t process, int number) const;

  std::vector<int> running() const;
  bool is_empty() const { return ranks_.empty(); }

 private:
  Guard guard_;
  std::unordered_map<pid_t, int> ranks_;  // of those that run
};

}  // namespace memspan::launcher
