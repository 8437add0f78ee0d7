// SPDX-License-Identifier: Apache-2.0
// Runs a job from the first process's start to the last one's end, in one loop without threads.
//
//   running --(a process failed)------> surviving: 0.6 s in which the others notice and report it
//      |  \--(shmem_global_exit)------> surviving, 0.2 s
//      |                                   |
//      |  \--(--stacks-on-timeout)----> surviving, 1 s: they print their stacks
//      +--(--timeout, second signal)--> terminating: SIGTERM has been sent
//      |                                   |
//      +--(stopped 1 s after a signal)-> killing: SIGKILL has been sent
//
// Then the rest of the processes' output is passed on, as long as its reader takes it.
//
// The first failure decides what is printed and returned; what happens to the others after it is
// its consequence and stays silent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "launcher/executor.h"
#include "launcher/options.h"
#include "launcher/signals.h"
#include "launcher/stops.h"
#include "launcher/verdict.h"
#include "launcher/watch.h"

namespace memspan::launcher {

// One thread.
class Supervisor {
 public:
  // `nodes` show the states of all processes. All must outlive it.
  static Result<std::unique_ptr<Supervisor>> make(const Options& options, const Nodes& nodes,
                                                  const Signals& signals, Executor& executor,
                                                  EventLoop& loop);

  // Starts every process; the error of the first that cannot be started. The executor's destructor
  // ends those that already were.
  Status start();
  // Returns what oshrun returns.
  int run();

 private:
  enum class Phase { kRunning, kSurviving, kTerminating, kKilling };

  Supervisor(const Options& options, const Nodes& nodes, const Signals& signals, Executor& executor,
             EventLoop& loop);
  void wait_and_serve(Deadline deadline);
  void pass_on_the_rest();
  void handle_signals();
  void handle_signal(int number);
  void note_stops();
  void handle_stops();
  void handle_endings();
  void say_end() const;
  void fail(const Failure& failure);
  void end_job(Phase phase, Duration patience);
  void escalate();
  void check_timeout();
  void say_notes();
  Deadline next_deadline() const;

  const Options& options_;
  const Signals& signals_;
  Executor& executor_;
  EventLoop& loop_;
  Watch signal_;
  Judge judge_;
  Stops stops_;
  Deadline timeout_ = Deadline::never();

  Phase phase_ = Phase::kRunning;
  Deadline escalation_ = Deadline::never();
  int asked_ = 0;              // the signal that asked us to end the job
  std::string stopped_then_;   // Stops::clause() when it came
  bool is_impatient_ = false;  // asked again, or when there was nothing to end but our own wait
  int result_ = 0;
};

}  // namespace memspan::launcher
