// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/log.h"
#include "launcher/say.h"
#include "launcher/stack_request.h"

namespace memspan::launcher {
namespace {

using std::chrono::milliseconds;

// Survivors of a failure are gone within a second, all steps together: most end by themselves in
// the first, those that compute get SIGTERM, and SIGKILL is for those that do not listen.
constexpr Duration kSurvivorsPatience = milliseconds(600);
constexpr Duration kGlobalExitPatience = milliseconds(200);
constexpr Duration kTerminatePatience = milliseconds(200);
// After a signal that ends the job, for a process that is still or again stopped.
constexpr Duration kStoppedPatience = milliseconds(1000);
// How long, after --timeout, a reader may take to read what the job printed.
constexpr Duration kReaderPatience = milliseconds(2000);

Deadline earlier(const Deadline& one, const Deadline& other) {
  return other.when() < one.when() ? other : one;
}

MEMSPAN_REMEDY(kJobTimeout, "job-timeout",
               "The time of --timeout passed before all processes ended, so oshrun ends them.",
               "Allow more time, or add --stacks-on-timeout to see in which call each PE waits.");

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::make(const Options& options, const Nodes& nodes,
                                                     const Signals& signals, Executor& executor,
                                                     EventLoop& loop) {
  auto supervisor =
      std::unique_ptr<Supervisor>(new Supervisor(options, nodes, signals, executor, loop));
  MEMSPAN_PASS(supervisor->signal_.start(loop, signals.descriptor(), EPOLLIN));
  return supervisor;
}

Supervisor::Supervisor(const Options& options, const Nodes& nodes, const Signals& signals,
                       Executor& executor, EventLoop& loop)
    : options_(options), signals_(signals), executor_(executor), loop_(loop), judge_(nodes) {}

Status Supervisor::start() {
  if (options_.timeout) timeout_ = Deadline::after(*options_.timeout);
  return executor_.start();
}

int Supervisor::run() {
  while (!executor_.is_empty()) {
    wait_and_serve(next_deadline());
    handle_endings();
    handle_stops();
    check_timeout();
    if (escalation_.has_passed()) escalate();
  }
  handle_endings();
  executor_.finish_output();
  pass_on_the_rest();
  if (result_ == 0 && log_level() <= LogLevel::kWarn)
    if (auto warning = judge_.warning_about_strangers()) say(*warning);
  return result_;
}

void Supervisor::wait_and_serve(Deadline deadline) {
  loop_.run_once(earlier(deadline, executor_.deadline()));
  handle_signals();
  executor_.serve();
  say_notes();
}

// A reader may take its time, as with a program that writes to it; a signal or --timeout ends that.
void Supervisor::pass_on_the_rest() {
  const auto& timeout = options_.timeout;
  const Deadline end = timeout ? Deadline::after(std::max(timeout_.remaining(), kReaderPatience))
                               : Deadline::never();
  while (!executor_.is_output_done() && !is_impatient_ && !end.has_passed()) wait_and_serve(end);
  if (executor_.pending_output() > 0)
    say(fmt::format("{} bytes that the job printed are lost, since no process read them",
                    executor_.pending_output()));
  if (is_impatient_ && result_ == 0) result_ = 128 + asked_;
}

void Supervisor::handle_signals() {
  while (std::optional<int> number = signals_.next())
    if (*number != SIGCHLD) handle_signal(*number);
}

void Supervisor::handle_signal(int number) {
  note_stops();  // as they were before the signal
  executor_.signal_all(number);
  if (number == SIGTSTP) raise(SIGSTOP);
  if (!ends_a_job(number)) return;
  // A process that catches the signal may finish its work; a second one ends the job.
  is_impatient_ = asked_ != 0 || executor_.is_empty();
  if (asked_ == 0) stopped_then_ = stops_.clause(Stops::Tense::kPast);
  if (asked_ != 0 && phase_ == Phase::kRunning) {
    result_ = 128 + number;
    end_job(Phase::kTerminating, kTerminatePatience);
  }
  asked_ = number;
}

void Supervisor::note_stops() {
  for (const Stop& stop : executor_.take_stops()) stops_.note(stop);
}

// A process that stops again before it handles the signal, as by a write to the terminal, ends only
// by SIGKILL.
void Supervisor::handle_stops() {
  note_stops();
  if (phase_ != Phase::kRunning) return;
  if (asked_ == 0) {
    if (const auto note = stops_.take_note()) say(*note);
  } else if (escalation_.is_never() && !stops_.is_empty()) {
    escalation_ = Deadline::after(kStoppedPatience);
  }
}

void Supervisor::handle_endings() {
  const std::vector<Ending> endings = executor_.reap();
  const std::vector<Ending> replaced = executor_.take_replaced();
  for (const Ending& ending : endings) stops_.note({ending.rank, 0});
  if (phase_ != Phase::kRunning) return;
  for (const Ending& ending : replaced)
    fail({ending, 1, "left the job without shmem_finalize, as exec() does"});
  if (phase_ != Phase::kRunning) return;
  if (endings.empty()) {
    if (auto breakdown = executor_.breakdown()) {
      say(breakdown->reason);
      result_ = breakdown->code;
      end_job(Phase::kTerminating, kTerminatePatience);
    }
    return;
  }
  if (auto request = executor_.exit_request()) {
    log_line(LogLevel::kDebug, fmt::format("oshrun: PE {} ended the job with shmem_global_exit({})",
                                           request->rank, request->code));
    result_ = request->code & 0xff;
    end_job(Phase::kSurviving, kGlobalExitPatience);
    return;
  }
  if (auto failure = judge_.first_failure(endings)) {
    fail(*failure);
    if (phase_ != Phase::kRunning) return;
  }
  // A wait for a process that ended without joining is in vain. (One that left properly is not
  // marked.)
  for (const Ending& ending : endings) executor_.mark_lost(ending);
}

void Supervisor::fail(const Failure& failure) {
  // Does nothing for one that is noted already.
  executor_.mark_lost(failure.ending);
  if (result_ == 0) result_ = failure.code;
  if (asked_ != 0 && failure.code == 128 + asked_)
    say_end();
  else
    say(fmt::format("PE {} (process {}) {}", failure.ending.rank, failure.ending.pid,
                    failure.description));
  if (options_.on_failure == OnFailure::kEndJob) end_job(Phase::kSurviving, kSurvivorsPatience);
}

void Supervisor::say_end() const {
  say(fmt::format("the job was ended by signal {}{}", describe_signal(asked_), stopped_then_));
}

void Supervisor::end_job(Phase phase, Duration patience) {
  phase_ = phase;
  if (phase == Phase::kTerminating) executor_.signal_all(SIGTERM);
  if (phase == Phase::kKilling) executor_.signal_all(SIGKILL);
  escalation_ = phase == Phase::kKilling ? Deadline::never() : Deadline::after(patience);
}

void Supervisor::escalate() {
  if (phase_ == Phase::kSurviving) return end_job(Phase::kTerminating, kTerminatePatience);
  if (phase_ == Phase::kRunning) {
    escalation_ = Deadline::never();
    if (stops_.is_empty()) return;
    stopped_then_ = stops_.clause(Stops::Tense::kPast);
    result_ = 128 + asked_;
    say_end();
  }
  end_job(Phase::kKilling, Duration::zero());
}

void Supervisor::check_timeout() {
  if (phase_ != Phase::kRunning || !timeout_.has_passed()) return;
  handle_endings();  // those that have just made it
  if (phase_ != Phase::kRunning || executor_.is_empty()) return;
  const std::vector<int> running = executor_.running();
  say(fmt::format(
      "the job did not end within {} s (--timeout); {}{}{}", to_seconds(*options_.timeout),
      running.empty() ? "it has not started" : "still running: PE " + format_ranks(running),
      stops_.clause(Stops::Tense::kPresent), kJobTimeout));
  result_ = 124;
  if (options_.on_timeout == OnTimeout::kEndJob)
    return end_job(Phase::kTerminating, kTerminatePatience);
  executor_.ask_for_stacks();
  say_notes();
  end_job(Phase::kSurviving, kStacksPatience);
}

void Supervisor::say_notes() {
  for (const std::string& note : executor_.take_notes()) say(note);
}

Deadline Supervisor::next_deadline() const {
  if (phase_ != Phase::kRunning) return escalation_;
  return earlier(timeout_, asked_ == 0 ? stops_.deadline() : escalation_);
}

}  // namespace memspan::launcher
