// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "command_line/environment.h"
#include "core/interrupt.h"
#include "launcher/agent_streams.h"
#include "launcher/exit_code.h"
#include "launcher/guard.h"
#include "launcher/job.h"
#include "launcher/job_order.h"
#include "launcher/local_executor.h"
#include "launcher/message_channel.h"
#include "launcher/signals.h"
#include "launcher/watch.h"

namespace memspan::launcher {
namespace {

// Variables of a host and a login, not of a job.
constexpr std::string_view kOwnVariables[] = {"HOSTNAME", "XDG_", "SSH_", "DISPLAY"};

bool is_own(std::string_view setting) {
  for (const std::string_view prefix : kOwnVariables)
    if (setting.starts_with(prefix)) return true;
  return false;
}

void take_over_environment(const std::vector<std::string>& settings) {
  std::vector<std::string> own;
  for (char** entry = environment(); *entry != nullptr; ++entry)
    if (is_own(*entry)) own.emplace_back(*entry);
  clearenv();
  const auto set = [](const std::string& setting) {
    const std::size_t equals = setting.find('=');
    if (equals != std::string::npos && equals > 0)
      setenv(setting.substr(0, equals).c_str(), setting.c_str() + equals + 1, 1);
  };
  for (const std::string& setting : own) set(setting);
  for (const std::string& setting : settings)
    if (!is_own(setting)) set(setting);
}

// One thread.
class Agent {
 public:
  Agent(EventLoop& loop, MessageChannel channel, const Signals& signals, AgentOutput output,
        AgentOutput errors)
      : loop_(loop),
        channel_(std::move(channel)),
        signals_(signals),
        streams_{std::move(output), std::move(errors)} {}

  int run(Guard guard);

 private:
  Result<std::string> receive_order();
  Status start(Guard guard, const std::string& text);
  void wait();
  bool is_asked_to_end() const;
  bool handle_messages();
  void handle(const Message& message);
  void report();
  void report_states();
  void pass_on_output();

  EventLoop& loop_;
  MessageChannel channel_;
  const Signals& signals_;
  Duration limit_ = kUsualSilence;
  std::array<AgentOutput, 2> streams_;
  AgentInput input_;
  Watch signal_watch_;
  std::array<Watch, 2> channel_watches_;
  std::array<Watch, 2> stream_watches_;
  Watch input_watch_;
  std::optional<Job> job_;
  std::unique_ptr<LocalExecutor> executor_;
  std::vector<PeerState> told_;  // of our processes, by index
  bool has_told_library_ = false;
  bool has_told_exit_ = false;
  bool is_suspended_ = false;  // so is the launcher
  bool is_done_ = false;       // all have ended, and their output was sent
  bool has_told_done_ = false;
};

// Ends when the launcher closes the channel. Destruction ends the processes.
int Agent::run(Guard guard) {
  channel_.send_line(greeting());
  auto order = receive_order();
  if (!order.is_ok()) return 1;
  const Status started = start(std::move(guard), *order);
  if (!started.is_ok()) executor_.reset();
  if (started.is_ok())
    channel_.send({.kind = Kind::kStarted});
  else
    channel_.send({.kind = Kind::kFailed, .value = exit_code(started), .text = started.message()});
  while (true) {
    wait();
    if (is_asked_to_end() || !handle_messages()) return 1;
    if (channel_.is_silent(limit_) && !is_suspended_) return 1;
    if (executor_ != nullptr) report();
    channel_.keep_alive(kUsualSilence);
    channel_.flush();
  }
}

Result<std::string> Agent::receive_order() {
  while (true) {
    std::array<pollfd, 1> polled{{{channel_.in(), POLLIN, 0}}};
    MEMSPAN_PASS(poll_ready(polled, Deadline::after(limit_), "the launcher is silent"));
    const bool is_open = channel_.receive();
    MEMSPAN_TRY_ASSIGN(auto message, channel_.next(), "receiving the job");
    if (message && message->kind == Kind::kJob) return std::move(message->text);
    if (!is_open) return Status(Code::kUnavailable, "the launcher is gone");
  }
}

Status Agent::start(Guard guard, const std::string& text) {
  MEMSPAN_TRY_ASSIGN(JobOrder order, JobOrder::decode(text), "starting");
  limit_ = order.silence;
  take_over_environment(order.environment);
  if (chdir(order.folder.c_str()) != 0)
    return {Code::kInvalidArgument,
            Status::from_errno(fmt::format("entering the folder \"{}\"", order.folder)).message()};
  AgentInput::close_own_end();
  if (order.part.host == 0) MEMSPAN_PASS(input_.open());
  MEMSPAN_PASS_ASSIGN(auto job, Job::make(std::move(order.options), std::move(order.part)));
  job_.emplace(std::move(job));
  told_.resize(static_cast<std::size_t>(job_->count()), PeerState::kAbsent);
  MEMSPAN_PASS_ASSIGN(auto executor, LocalExecutor::make(*job_, std::move(guard), loop_));
  executor_ = std::move(executor);
  Status started = executor_->start();
  AgentInput::close_own_end();
  return started;
}

void Agent::wait() {
  signal_watch_.set(true, loop_, signals_.descriptor(), EPOLLIN);
  channel_watches_[0].set(true, loop_, channel_.in(), EPOLLIN);
  channel_watches_[1].set(channel_.wants_to_write(), loop_, channel_.out(), EPOLLOUT);
  for (std::size_t i = 0; i < streams_.size(); ++i)
    stream_watches_[i].set(streams_[i].has_window(), loop_, streams_[i].descriptor(), EPOLLIN);
  input_watch_.set(input_.wants_to_write(), loop_, input_.descriptor(), EPOLLOUT);
  const Deadline own = executor_ != nullptr ? executor_->deadline() : Deadline::never();
  loop_.run_once(own.within(kUsualSilence / 8));
}

bool Agent::is_asked_to_end() const {
  while (const std::optional<int> number = signals_.next())
    if (ends_a_job(*number)) return true;
  return false;
}

// False when the launcher is gone.
bool Agent::handle_messages() {
  const bool is_open = channel_.receive();
  while (true) {
    auto message = channel_.next();
    if (!message.is_ok()) return false;
    if (!*message) return is_open;
    handle(**message);
  }
}

void Agent::handle(const Message& message) {
  if (executor_ == nullptr) return;
  const NodeSegment& segment = job_->nodes().segment_of(job_->first_rank());
  const bool is_rank = message.rank >= 0 && message.rank < job_->size();
  switch (message.kind) {
    case Kind::kSignal:
      if (message.value == SIGTSTP) is_suspended_ = true;
      if (message.value == SIGCONT) is_suspended_ = false;
      executor_->signal_all(message.value);
      break;
    case Kind::kStacks:
      executor_->ask_for_stacks();
      break;
    case Kind::kLost:
      if (!is_rank) break;
      if (!job_->has(message.rank)) segment.peer(message.rank).pid.store(message.process);
      executor_->mark_lost({message.rank, message.process, message.value});
      break;
    case Kind::kExit:
      has_told_exit_ = true;
      if (is_rank) segment.request_exit(message.rank, message.value);
      break;
    case Kind::kInput:
      input_.append(message.text);
      break;
    case Kind::kTaken:
      if (message.rank == 1 || message.rank == 2)
        streams_[static_cast<std::size_t>(message.rank - 1)].take(
            static_cast<std::size_t>(message.value));
      break;
    default:
      break;
  }
}

void Agent::report() {
  input_watch_.stop();  // pass_on() may close it
  input_.pass_on(channel_);
  executor_->serve();
  const std::vector<Ending> endings = executor_->reap();
  const std::vector<Ending> replaced = executor_->take_replaced();
  pass_on_output();
  for (std::string& note : executor_->take_notes())
    channel_.send({.kind = Kind::kNote, .text = std::move(note)});
  for (const Stop& stop : executor_->take_stops())
    channel_.send({.kind = Kind::kStopped, .rank = stop.rank, .value = stop.number});
  if (!endings.empty() || !replaced.empty()) report_states();
  for (const Ending& ending : replaced)
    channel_.send({.kind = Kind::kReplaced,
                   .rank = ending.rank,
                   .process = ending.pid,
                   .value = ending.wait_status});
  if (const auto request = executor_->exit_request();
      request && !endings.empty() && !has_told_exit_) {
    has_told_exit_ = true;
    channel_.send({.kind = Kind::kExit, .rank = request->rank, .value = request->code});
  }
  for (const Ending& ending : endings)
    channel_.send({.kind = Kind::kEnded,
                   .rank = ending.rank,
                   .process = ending.pid,
                   .value = ending.wait_status});
  if (is_done_ && !std::exchange(has_told_done_, true)) channel_.send({.kind = Kind::kDone});
}

// The launcher judges ended processes by these states.
void Agent::report_states() {
  const Nodes& nodes = job_->nodes();
  if (nodes.is_library_seen() && !std::exchange(has_told_library_, true))
    channel_.send({.kind = Kind::kLibrary});
  for (int index = 0; index < job_->count(); ++index) {
    const int rank = job_->first_rank() + index;
    const PeerState state = nodes.slot(rank).state.load(std::memory_order_acquire);
    if (state == std::exchange(told_[static_cast<std::size_t>(index)], state)) continue;
    channel_.send({.kind = Kind::kState,
                   .rank = rank,
                   .process = nodes.slot(rank).pid.load(),
                   .value = static_cast<int>(state)});
  }
}

void Agent::pass_on_output() {
  const bool is_empty = executor_->is_empty();
  if (is_empty && !is_done_) executor_->finish_output();
  bool is_all = true;
  for (AgentOutput& stream : streams_) is_all = stream.pass_on(channel_) && is_all;
  if (!is_empty || is_done_ || !is_all || !executor_->is_output_done()) return;
  is_done_ = true;
}

}  // namespace

int run_agent() {
  auto signals = Signals::block();
  auto channel = MessageChannel::make(duplicate(STDIN_FILENO), duplicate(STDOUT_FILENO));
  auto guard = Guard::start();
  auto output = AgentOutput::make(STDOUT_FILENO);
  auto errors = AgentOutput::make(STDERR_FILENO);
  auto loop = EventLoop::without_thread();
  if (!signals.is_ok() || !channel.is_ok() || !guard.is_ok() || !output.is_ok() ||
      !errors.is_ok() || !loop.is_ok())
    return 1;
  Agent agent(**loop, std::move(*channel), *signals, std::move(*output), std::move(*errors));
  return agent.run(std::move(*guard));
}

}  // namespace memspan::launcher
