// SPDX-License-Identifier: Apache-2.0
// What starts the processes of a job, signals them, sees them end and passes on their output. The
// supervisor above it decides when the job ends and how.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "launcher/nodes.h"
#include "launcher/processes.h"

namespace memspan::launcher {

// Why a job cannot continue although no process of it failed. A value.
struct Breakdown {
  std::string reason;
  int code = 1;  // what the launcher returns
};

// One thread. Destruction ends what still runs.
class Executor {
 public:
  virtual ~Executor() = default;

  // Returns the error of the first process that cannot be started. A slow start continues in
  // serve(), and an error is then a breakdown.
  virtual Status start() = 0;

  // To be called when the event loop's wait has ended, at the deadline at the latest.
  virtual void serve() = 0;
  virtual Deadline deadline() const = 0;

  // No process runs, and none will.
  virtual bool is_empty() const = 0;
  virtual std::vector<int> running() const = 0;
  virtual void signal_all(int number) = 0;
  // SIGUSR2 to those that answer it (observe/stacks.cc); notes name the others and why.
  virtual void ask_for_stacks() = 0;
  // Lines for the user, since the last call.
  virtual std::vector<std::string> take_notes() = 0;

  // The stops and continuations since the last call, without waiting.
  virtual std::vector<Stop> take_stops() = 0;
  // The endings since the last call, without waiting.
  virtual std::vector<Ending> reap() = 0;
  // Processes that run another program than the one that joined.
  virtual std::vector<Ending> take_replaced() = 0;
  // The first one that is seen; all processes know of it then.
  virtual std::optional<ExitRequest> exit_request() = 0;
  virtual std::optional<Breakdown> breakdown() const = 0;
  // Marks this process as lost for all processes, unless it left properly.
  virtual void mark_lost(const Ending& ending) = 0;

  // All processes have ended: takes what they left.
  virtual void finish_output() = 0;
  virtual bool is_output_done() const = 0;
  // Bytes that the reader of the launcher's output has not taken.
  virtual std::size_t pending_output() const = 0;
};

}  // namespace memspan::launcher
