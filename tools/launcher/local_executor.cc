// SPDX-License-Identifier: Apache-2.0
#include "launcher/local_executor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "core/log.h"
#include "launcher/say.h"

namespace memspan::launcher {

Result<std::unique_ptr<LocalExecutor>> LocalExecutor::make(const Job& job, Guard guard,
                                                           EventLoop& loop) {
  MEMSPAN_PASS_ASSIGN(auto forwarding, Forwarding::make(job.options(), job.channel(), loop));
  return std::unique_ptr<LocalExecutor>(
      new LocalExecutor(job, std::move(guard), loop, std::move(forwarding)));
}

LocalExecutor::LocalExecutor(const Job& job, Guard guard, EventLoop& loop,
                             std::unique_ptr<Forwarding> forwarding)
    : job_(job),
      loop_(loop),
      store_(job.count()),
      store_watches_(static_cast<std::size_t>(job.count())),
      forwarding_(std::move(forwarding)),
      processes_(std::move(guard)) {}

Status LocalExecutor::start() {
  const std::vector<Program>& programs = job_.options().programs;
  int rank = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Spawner spawner(job_.file(i), programs[i].command, programs[i].folder, job_.open_files());
    for (int count = 0; count < programs[i].processes; ++count, ++rank)
      if (job_.has(rank)) MEMSPAN_PASS(start_one(spawner, i, rank));
  }
  return Status::ok();
}

Status LocalExecutor::start_one(Spawner& spawner, std::size_t program, int rank) {
  // The process's ends; closed here once it has them.
  Fd input;
  Fd output;
  Fd errors;
  Start start;
  const int index = index_of(rank);
  MEMSPAN_PASS_ASSIGN(auto socket, store_.open(index));
  MEMSPAN_TRY(store_watches_[static_cast<std::size_t>(index)].start(
                  loop_, store_.descriptor(index), EPOLLIN,
                  [this, index](std::uint32_t) { serve_store(index); }),
              "watching the store's sockets");
  if (rank != 0) {
    input.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!input.is_valid()) return Status::from_errno("opening /dev/null");
  } else if (isatty(STDIN_FILENO) == 1) {
    MEMSPAN_PASS_ASSIGN(auto terminal, TerminalInput::make(input));
    terminal_ = std::move(terminal);
    watch_terminal();
  }
  MEMSPAN_TRY(forwarding_->open(rank, output, errors), "starting a process");
  start.environment = job_.environment_of(program, rank, socket.get());
  start.input = input.get();
  start.output = output.get();
  start.errors = errors.get();
  start.inherited = {job_.nodes().segment_for_children(rank), job_.nodes().heap_for_children(rank),
                     socket.get()};
  if (!job_.cores().empty()) start.core = job_.cores()[static_cast<std::size_t>(index)];
  return processes_.start(spawner, rank, start);
}

// Watches what the terminal's input needs next: the terminal, the pipe, or neither.
void LocalExecutor::watch_terminal() {
  terminal_watch_.stop();
  if (!terminal_ || !terminal_->is_open() || is_terminal_paused_) return;
  const bool reads = terminal_->wants_terminal();
  Status status = terminal_watch_.start(loop_, reads ? STDIN_FILENO : terminal_->pipe(),
                                        reads ? EPOLLIN : EPOLLOUT,
                                        [this](std::uint32_t) { serve_terminal(); });
  if (!status.is_ok()) terminal_.reset();
}

void LocalExecutor::serve_terminal() {
  terminal_watch_.stop();
  is_terminal_paused_ = !terminal_->advance();
  watch_terminal();
}

void LocalExecutor::serve() {
  serve_output();
  if (stacks_.deadline().has_passed()) stacks_.finish();
}

// A process that closes all its descriptors has ended or runs another program. A signal reports the
// end; only this reports another program.
void LocalExecutor::serve_store(int index) {
  const auto is_closed = store_.serve(index);
  if (!is_closed.is_ok()) log_line(LogLevel::kError, is_closed.status().to_string());
  if (!is_closed.is_ok() || !*is_closed) return;
  store_watches_[static_cast<std::size_t>(index)].stop();
  const int rank = rank_of(index);
  if (!job_.nodes().mark_replaced(rank)) return;
  replaced_.push_back({rank, job_.nodes().slot(rank).pid.load(), kReplacedProgram});
}

// A writer without a reader gets SIGPIPE. We send it, since a pseudo-terminal does not.
void LocalExecutor::serve_output() {
  forwarding_->flush();
  const int error = forwarding_->lost_reader();
  if (error == 0) return;
  if (error != EPIPE)
    say(Status::from_errno("the job's output cannot be written", error).message());
  processes_.signal_all(SIGPIPE);
  forwarding_->close_lost();
}

PeerState LocalExecutor::state_of(int rank) const {
  return job_.nodes().slot(rank).state.load(std::memory_order_acquire);
}

// Only members of the job get the signal. It would end a shell around a PE, a PE's helper, and a
// process before shmem_init.
void LocalExecutor::ask_for_stacks(Mute mute) {
  for (const int rank : processes_.running()) {
    const PeerState state = state_of(rank);
    const pid_t process = job_.nodes().slot(rank).pid.load(std::memory_order_relaxed);
    const bool answers = stacks_.add(rank, state, process);
    if (answers || (state == PeerState::kJoined && mute == Mute::kSignalled))
      processes_.signal_one(process, SIGUSR2);
  }
}

void LocalExecutor::signal_all(int number) {
  const std::vector<int> running = processes_.running();
  // If no process is in the job, the signal has no meaning of ours.
  if (number == SIGUSR2 && std::any_of(running.begin(), running.end(), [this](int rank) {
        return state_of(rank) == PeerState::kJoined;
      }))
    return ask_for_stacks(Mute::kSignalled);
  if (number == SIGTERM) stacks_.finish();  // while they exist
  processes_.signal_all(number);
  if (number != SIGCONT) return;
  is_terminal_paused_ = false;
  watch_terminal();
}

std::vector<Ending> LocalExecutor::reap() {
  std::vector<Ending> endings = processes_.reap();
  for (const Ending& ending : endings) forwarding_->finish(index_of(ending.rank));
  return endings;
}

std::vector<Ending> LocalExecutor::take_replaced() {
  return std::exchange(replaced_, {});
}

void LocalExecutor::mark_lost(const Ending& ending) {
  job_.nodes().mark_lost(ending.rank, ending.wait_status);
}

}  // namespace memspan::launcher
