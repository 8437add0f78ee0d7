// SPDX-License-Identifier: Apache-2.0
#include "launcher/local_executor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "core/log.h"
#include "launcher/say.h"

namespace memspan::launcher {

Result<std::unique_ptr<LocalExecutor>> LocalExecutor::make(const Job& job, Guard guard) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_valid()) return Status::from_errno("epoll_create1");
  auto forwarding = Forwarding::make(job.options(), job.channel());
  if (!forwarding.is_ok()) return forwarding.status();
  auto executor = std::unique_ptr<LocalExecutor>(
      new LocalExecutor(job, std::move(guard), std::move(epoll), std::move(*forwarding)));
  MEMSPAN_TRY(executor->watch(executor->forwarding_->descriptor(), EPOLLIN, Source::kOutput, 0),
              "watching the output");
  return executor;
}

LocalExecutor::LocalExecutor(const Job& job, Guard guard, Fd epoll,
                             std::unique_ptr<Forwarding> forwarding)
    : job_(job),
      epoll_(std::move(epoll)),
      store_(job.count()),
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
  auto socket = store_.open(index);
  if (!socket.is_ok()) return socket.status();
  MEMSPAN_TRY(watch(store_.descriptor(index), EPOLLIN, Source::kStore, index),
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
  if (!job_.cores().empty()) start.core = job_.cores()[static_cast<std::size_t>(index)];
  return processes_.start(spawner, rank, start);
}

Status LocalExecutor::watch(int descriptor, std::uint32_t events, Source source, int index) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = (static_cast<std::uint64_t>(source) << 32) | static_cast<std::uint32_t>(index);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    return Status::from_errno("epoll_ctl");
  return Status::ok();
}

// Watches what the terminal's input needs next: the terminal, the pipe, or neither.
void LocalExecutor::watch_terminal() {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
  if (!terminal_ || !terminal_->is_open()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, terminal_->pipe(), nullptr);
  if (is_terminal_paused_) return;
  Status status = terminal_->wants_terminal()
                      ? watch(STDIN_FILENO, EPOLLIN, Source::kTerminal, 0)
                      : watch(terminal_->pipe(), EPOLLOUT, Source::kTerminal, 0);
  if (!status.is_ok()) terminal_.reset();
}

void LocalExecutor::serve() {
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    serve_one(static_cast<Source>(tag >> 32), static_cast<int>(tag & 0xffffffffu));
  }
  if (stacks_.deadline().has_passed()) stacks_.finish();
}

void LocalExecutor::serve_one(Source source, int index) {
  switch (source) {
    case Source::kStore:
      serve_store(index);
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

// A process that closes all its descriptors has ended or runs another program. A signal reports the
// end; only this reports another program.
void LocalExecutor::serve_store(int index) {
  const auto is_closed = store_.serve(index);
  if (!is_closed.is_ok()) log_line(LogLevel::kError, is_closed.status().to_string());
  const int rank = rank_of(index);
  if (!is_closed.is_ok() || !*is_closed || !job_.nodes().mark_replaced(rank)) return;
  replaced_.push_back({rank, job_.nodes().slot(rank).pid.load(), kReplacedProgram});
}

// A writer without a reader gets SIGPIPE. We send it, since a pseudo-terminal does not.
void LocalExecutor::serve_output() {
  forwarding_->serve();
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
