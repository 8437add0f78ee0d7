// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/log.h"

namespace memspan::launcher {
namespace {

using std::chrono::milliseconds;

// Survivors of a failure are gone within a second, all steps together: most end by themselves in
// the first, those that compute get SIGTERM, and SIGKILL is for those that do not listen.
constexpr Duration kSurvivorsPatience = milliseconds(600);
constexpr Duration kGlobalExitPatience = milliseconds(200);
constexpr Duration kTerminatePatience = milliseconds(200);
// How long, after --timeout, somebody may take to read what the job printed.
constexpr Duration kReaderPatience = milliseconds(2000);

}  // namespace

void say(const std::string& line) {
  std::string whole = fmt::format("oshrun: {}\n", line);
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, whole.data(), whole.size());
}

Result<std::unique_ptr<Supervisor>> Supervisor::make(const Job& job, const Signals& signals,
                                                     Guard guard) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_valid()) return Status::from_errno("epoll_create1");
  auto forwarding = Forwarding::make(job.options(), job.channel());
  if (!forwarding.is_ok()) return forwarding.status();
  auto supervisor = std::unique_ptr<Supervisor>(
      new Supervisor(job, signals, std::move(guard), std::move(epoll), std::move(*forwarding)));
  MEMSPAN_TRY(supervisor->watch(signals.descriptor(), EPOLLIN, Source::kSignals, 0),
              "watching for signals");
  MEMSPAN_TRY(supervisor->watch(supervisor->forwarding_->descriptor(), EPOLLIN, Source::kOutput, 0),
              "watching the output");
  return supervisor;
}

Supervisor::Supervisor(const Job& job, const Signals& signals, Guard guard, Fd epoll,
                       std::unique_ptr<Forwarding> forwarding)
    : job_(job),
      signals_(signals),
      epoll_(std::move(epoll)),
      store_(job.size()),
      forwarding_(std::move(forwarding)),
      judge_(job.nodes()),
      processes_(std::move(guard)) {}

Status Supervisor::start() {
  if (job_.options().timeout) timeout_ = Deadline::after(*job_.options().timeout);
  int rank = 0;
  const std::vector<Program>& programs = job_.options().programs;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Spawner spawner(job_.file(i), programs[i].command, programs[i].folder, signals_.original(),
                    job_.open_files());
    for (int count = 0; count < programs[i].processes; ++count)
      if (Status status = start_one(spawner, i, rank++); !status.is_ok()) return status;
  }
  return Status::ok();
}

Status Supervisor::start_one(Spawner& spawner, std::size_t program, int rank) {
  // The process's ends; closed here once it has them.
  Fd input;
  Fd output;
  Fd errors;
  Start start;
  auto socket = store_.open(rank);
  if (!socket.is_ok()) return socket.status();
  MEMSPAN_TRY(watch(store_.descriptor(rank), EPOLLIN, Source::kStore, rank),
              "watching the store's sockets");
  if (rank != 0) {
    input.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!input.is_valid()) return Status::from_errno("opening /dev/null");
  } else if (isatty(STDIN_FILENO) == 1) {
    auto terminal = TerminalInput::make(input);
    if (!terminal.is_ok()) return terminal.status();
    terminal_ = std::move(*terminal);
    watch_terminal();
  }
  MEMSPAN_TRY(forwarding_->open(rank, output, errors), "starting a process");
  start.environment = job_.environment_of(program, rank, socket->get());
  start.input = input.get();
  start.output = output.get();
  start.errors = errors.get();
  start.inherited = {job_.nodes().segment_for_children(rank), job_.nodes().heap_for_children(rank),
                     socket->get()};
  if (!job_.cores().empty()) start.core = job_.cores()[static_cast<std::size_t>(rank)];
  return processes_.start(spawner, rank, start);
}

Status Supervisor::watch(int descriptor, std::uint32_t events, Source source, int rank) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = (static_cast<std::uint64_t>(source) << 32) | static_cast<std::uint32_t>(rank);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    return Status::from_errno("epoll_ctl");
  return Status::ok();
}

// Watches what the terminal's input needs next: the terminal, the pipe, or neither.
void Supervisor::watch_terminal() {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
  if (!terminal_ || !terminal_->is_open()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, terminal_->pipe(), nullptr);
  if (is_terminal_paused_) return;
  Status status = terminal_->wants_terminal()
                      ? watch(STDIN_FILENO, EPOLLIN, Source::kTerminal, 0)
                      : watch(terminal_->pipe(), EPOLLOUT, Source::kTerminal, 0);
  if (!status.is_ok()) terminal_.reset();
}

int Supervisor::run() {
  while (!processes_.is_empty()) {
    wait_and_serve(next_deadline());
    check_timeout();
    if (escalation_.has_passed()) escalate();
  }
  forwarding_->finish_all();
  pass_on_the_rest();
  if (result_ == 0 && log_level() <= LogLevel::kWarn)
    if (auto warning = judge_.warning_about_strangers()) say(*warning);
  return result_;
}

void Supervisor::wait_and_serve(Deadline deadline) {
  std::array<epoll_event, 64> events{};
  int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                         deadline.remaining_poll_ms());
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    serve(static_cast<Source>(tag >> 32), static_cast<int>(tag & 0xffffffffu));
  }
}

// A reader may take its time, as with a program that writes to it; a signal or --timeout ends that.
void Supervisor::pass_on_the_rest() {
  const auto& timeout = job_.options().timeout;
  const Deadline end = timeout ? Deadline::after(std::max(timeout_.remaining(), kReaderPatience))
                               : Deadline::never();
  while (forwarding_->pending() > 0 && !is_impatient_ && !end.has_passed()) wait_and_serve(end);
  if (forwarding_->pending() > 0)
    say(fmt::format("{} bytes that the job printed are lost, since nobody read them",
                    forwarding_->pending()));
  if (is_impatient_ && result_ == 0) result_ = 128 + asked_;
}

void Supervisor::serve(Source source, int rank) {
  switch (source) {
    case Source::kSignals:
      handle_signals();
      break;
    case Source::kStore:
      if (auto is_closed = store_.serve(rank); !is_closed.is_ok())
        log_line(LogLevel::kError, is_closed.status().to_string());
      else if (*is_closed)
        handle_departure(rank);
      break;
    case Source::kOutput:
      serve_output();
      break;
    case Source::kTerminal:
      if (terminal_ && terminal_->is_open()) is_terminal_paused_ = !terminal_->advance();
      watch_terminal();
      break;
  }
}

// Who writes where nobody reads gets SIGPIPE. From us, since a pseudo-terminal sends none.
void Supervisor::serve_output() {
  forwarding_->serve();
  const int error = forwarding_->lost_reader();
  if (error == 0) return;
  if (error != EPIPE)
    say(Status::from_errno("the job's output cannot be written", error).message());
  processes_.signal_all(SIGPIPE);
  forwarding_->close_lost();
}

void Supervisor::handle_signals() {
  bool has_ending = false;
  while (std::optional<int> number = signals_.next()) {
    if (*number == SIGCHLD)
      has_ending = true;
    else
      handle_signal(*number);
  }
  if (has_ending) handle_endings();
}

void Supervisor::handle_signal(int number) {
  processes_.signal_all(number);
  switch (number) {
    case SIGINT:
    case SIGQUIT:
    case SIGTERM:
    case SIGHUP:
      // Whoever catches the signal may finish its work; a second one is meant.
      is_impatient_ = asked_ != 0 || processes_.is_empty();
      if (asked_ != 0 && phase_ == Phase::kRunning) {
        result_ = 128 + number;
        end_job(Phase::kTerminating, kTerminatePatience);
      }
      asked_ = number;
      break;
    case SIGTSTP:
      raise(SIGSTOP);
      break;
    case SIGCONT:
      is_terminal_paused_ = false;
      watch_terminal();
      break;
    default:
      break;
  }
}

void Supervisor::handle_endings() {
  std::vector<Ending> endings = processes_.reap();
  for (const Ending& ending : endings) forwarding_->finish(ending.rank);
  if (phase_ != Phase::kRunning) return;
  if (auto request = job_.nodes().exit_request()) {
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
  // Whoever waits for a process that ended without joining waits in vain. (One that left properly
  // is not marked.)
  for (const Ending& ending : endings) job_.nodes().mark_lost(ending.rank, ending.wait_status);
}

// All descriptors of a process are closed. When it ends, a signal tells; here is told what none
// does.
void Supervisor::handle_departure(int rank) {
  if (phase_ != Phase::kRunning || !job_.nodes().mark_replaced(rank)) return;
  const Ending ending{rank, job_.nodes().slot(rank).pid.load(), 0};
  fail({ending, 1, "left the job without shmem_finalize, as exec() does"});
}

void Supervisor::fail(const Failure& failure) {
  // Does nothing for one that is noted already.
  job_.nodes().mark_lost(failure.ending.rank, failure.ending.wait_status);
  if (result_ == 0) result_ = failure.code;
  if (asked_ != 0 && failure.code == 128 + asked_)
    say(fmt::format("the job was ended by signal {}", describe_signal(asked_)));
  else
    say(fmt::format("PE {} (process {}) {}", failure.ending.rank, failure.ending.pid,
                    failure.description));
  if (job_.options().on_failure == OnFailure::kEndJob)
    end_job(Phase::kSurviving, kSurvivorsPatience);
}

void Supervisor::end_job(Phase phase, Duration patience) {
  phase_ = phase;
  if (phase == Phase::kTerminating) processes_.signal_all(SIGTERM);
  if (phase == Phase::kKilling) processes_.signal_all(SIGKILL);
  escalation_ = phase == Phase::kKilling ? Deadline::never() : Deadline::after(patience);
}

void Supervisor::escalate() {
  if (phase_ == Phase::kSurviving)
    end_job(Phase::kTerminating, kTerminatePatience);
  else
    end_job(Phase::kKilling, Duration::zero());
}

void Supervisor::check_timeout() {
  if (phase_ != Phase::kRunning || !timeout_.has_passed()) return;
  handle_endings();  // those that have just made it
  if (phase_ != Phase::kRunning || processes_.is_empty()) return;
  say(fmt::format("the job did not end within {} s (--timeout); still running: PE {}",
                  to_seconds(*job_.options().timeout), format_ranks(processes_.running())));
  result_ = 124;
  end_job(Phase::kTerminating, kTerminatePatience);
}

Deadline Supervisor::next_deadline() const {
  if (phase_ != Phase::kRunning) return escalation_;
  return timeout_;
}

}  // namespace memspan::launcher
