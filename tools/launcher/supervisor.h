// SPDX-License-Identifier: Apache-2.0
// Runs a job from the first process's start to the last one's end, in one loop without threads.
//
//   running --(a process failed)------> surviving: 0.6 s in which the others notice and say so
//      |  \--(shmem_global_exit)------> surviving, 0.2 s
//      |                                   |
//      +--(--timeout, second signal)--> terminating: SIGTERM has been sent
//                                          |
//                                       killing: SIGKILL has been sent
//
// Then what the processes printed is passed on to its end, for as long as somebody reads it.
//
// The first failure decides what is printed and returned; what happens to the others after it is
// its consequence and stays silent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "launcher/forwarding.h"
#include "launcher/job.h"
#include "launcher/processes.h"
#include "launcher/signals.h"
#include "launcher/store_desk.h"
#include "launcher/terminal_input.h"
#include "launcher/verdict.h"

namespace memspan::launcher {

// "oshrun: `line`" on stderr, in one piece.
void say(const std::string& line);

// One thread.
class Supervisor {
 public:
  static Result<std::unique_ptr<Supervisor>> make(const Job& job, const Signals& signals,
                                                  Guard guard);

  // Starts every process; the error of the first that cannot be started. The destructor ends
  // those that already were.
  Status start();
  // Returns what oshrun returns.
  int run();

 private:
  enum class Phase { kRunning, kSurviving, kTerminating, kKilling };
  enum class Source : std::uint32_t { kSignals, kStore, kOutput, kTerminal };

  Supervisor(const Job& job, const Signals& signals, Guard guard, Fd epoll,
             std::unique_ptr<Forwarding> forwarding);
  Status start_one(Spawner& spawner, std::size_t program, int rank);
  Status watch(int descriptor, std::uint32_t events, Source source, int rank);
  void watch_terminal();
  void wait_and_serve(Deadline deadline);
  void serve(Source source, int rank);
  void serve_output();
  void pass_on_the_rest();
  void handle_signals();
  void handle_signal(int number);
  void handle_endings();
  void handle_departure(int rank);
  void fail(const Failure& failure);
  void end_job(Phase phase, Duration patience);
  void escalate();
  void check_timeout();
  Deadline next_deadline() const;

  const Job& job_;
  const Signals& signals_;
  Fd epoll_;
  StoreDesk store_;
  std::unique_ptr<Forwarding> forwarding_;
  std::optional<TerminalInput> terminal_;
  bool is_terminal_paused_ = false;
  Judge judge_;
  Processes processes_;
  Deadline timeout_ = Deadline::never();

  Phase phase_ = Phase::kRunning;
  Deadline escalation_ = Deadline::never();
  int asked_ = 0;              // the signal that asked us to end the job
  bool is_impatient_ = false;  // asked again, or when there was nothing to end but our own wait
  int result_ = 0;
};

}  // namespace memspan::launcher
