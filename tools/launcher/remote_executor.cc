// SPDX-License-Identifier: Apache-2.0
#include "launcher/remote_executor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "command_line/environment.h"
#include "launcher/job_store.h"
#include "launcher/rendezvous.h"
#include "launcher/say.h"
#include "launcher/signals.h"

namespace memspan::launcher {
namespace {

using State = AgentHost::State;

// From the end of a channel to that of its shell, or the other way round.
constexpr Duration kExplanationPatience = std::chrono::milliseconds(500);
// For agents that have nothing left to do but to end.
constexpr Duration kGoodbyePatience = std::chrono::seconds(1);

std::vector<std::string> own_environment() {
  std::vector<std::string> settings;
  for (char** entry = environment(); *entry != nullptr; ++entry) settings.emplace_back(*entry);
  return settings;
}

}  // namespace

Result<std::unique_ptr<RemoteExecutor>> RemoteExecutor::make(const Options& options,
                                                             const Nodes& mirror, Guard guard,
                                                             EventLoop& loop) {
  MEMSPAN_PASS_ASSIGN(const auto limits, AgentLimits::from_environment());
  return std::unique_ptr<RemoteExecutor>(
      new RemoteExecutor(options, mirror, std::move(guard), loop, limits));
}

RemoteExecutor::RemoteExecutor(const Options& options, const Nodes& mirror, Guard guard,
                               EventLoop& loop, const AgentLimits& limits)
    : options_(options),
      mirror_(mirror),
      loop_(loop),
      limits_(limits),
      output_(options.hosts.size(), options.label),
      shells_(std::move(guard)) {}

// Agents end when their input does, and their processes with them.
RemoteExecutor::~RemoteExecutor() {
  const Deadline deadline = Deadline::after(kGoodbyePatience);
  for (AgentHost& host : hosts_) {
    host.watches = {};
    if (host.is_open()) host.channel->close_out();
  }
  for (AgentHost& host : hosts_) {
    while (host.is_open() && !deadline.has_passed() && host.channel->receive()) {
      host.channel->drop_received();
      pollfd ended{host.channel->in(), POLLIN, 0};
      poll(&ended, 1, deadline.remaining_poll_ms());
    }
  }
}

Status RemoteExecutor::start() {
  start_ = Deadline::after(limits_.start);
  order_.options = options_;
  std::error_code error;
  order_.folder = std::filesystem::current_path(error).string();
  order_.environment = own_environment();
  order_.silence = limits_.silence;
  MEMSPAN_PASS(open_store());
  int rank = 0;
  for (std::size_t i = 0; i < options_.hosts.size(); ++i) {
    AgentHost host;
    host.number = static_cast<int>(i);
    host.name = options_.host_names[i];
    host.first_rank = rank;
    host.processes = options_.hosts[i];
    rank += host.processes;
    hosts_.push_back(std::move(host));
    MEMSPAN_TRY(call(hosts_.back()), fmt::format("host \"{}\"", hosts_.back().name));
  }
  return Status::ok();
}

Status RemoteExecutor::open_store() {
  order_.part.master =
      options_.hosts.size() > 1 ? address_part(options_.host_names[0]) : "127.0.0.1";
  order_.part.master_port = free_port();
  if (options_.hosts.size() < 2) return Status::ok();
  MEMSPAN_TRY_ASSIGN(store_, open_job_store(options_.host_names),
                     "hosting the job's store, which several hosts need");
  order_.part.store_url = store_->endpoint().to_string();
  order_.part.secret = store_->secret();
  if (is_this_host(options_.host_names[0])) order_.part.master = store_->endpoint().host;
  return Status::ok();
}

Status RemoteExecutor::call(AgentHost& host) {
  MEMSPAN_PASS(call_agent(host, options_, order_.environment, shells_));
  return host.watches[0].start(loop_, host.channel->in(), EPOLLIN);
}

void RemoteExecutor::serve() {
  for (AgentHost& host : hosts_)
    if (host.is_open()) serve_host(host);
  if (!has_sent_orders_ && std::all_of(hosts_.begin(), hosts_.end(), [](const AgentHost& host) {
        return host.state == State::kGreeted;
      }))
    send_orders();
  if (hosts_[0].is_open() && hosts_[0].state == State::kRunning) input_.pass_on(*hosts_[0].channel);
  serve_output();
  check_limits();
  watch_writers();
}

void RemoteExecutor::serve_host(AgentHost& host) {
  const bool is_open = host.channel->receive();
  if (host.state == State::kCalled) {
    const auto line = host.channel->take_line();
    if (line && *line == greeting()) {
      host.state = State::kGreeted;
    } else if (line && !line->empty()) {
      const std::string_view said(*line);
      break_down(host, fmt::format("\"{}\" said \"{}\" instead of \"{}\"", host.command,
                                   said.substr(0, said.find_last_not_of("\r\n") + 1),
                                   greeting().substr(0, greeting().size() - 1)));
      host.state = State::kFinished;
    }
  }
  while (host.state != State::kCalled) {
    auto message = host.channel->next();
    if (!message.is_ok()) break_down(host, "its agent sent " + message.status().message());
    if (!message.is_ok() || !*message) break;
    handle(host, **message);
  }
  if (!is_open) lose(host);
}

void RemoteExecutor::handle(AgentHost& host, const Message& message) {
  const auto index = static_cast<std::size_t>(host.number);
  switch (message.kind) {
    case Kind::kStarted:
      host.state = State::kRunning;
      for (int i = 0; i < host.processes; ++i) running_.insert(host.first_rank + i);
      break;
    case Kind::kFailed:
      host.state = State::kFinished;
      break_down(host, message.text, message.value);
      break;
    case Kind::kLibrary:
      mirror_.segment_of(0).header().library_seen.store(1);
      break;
    case Kind::kOutput:
      if (message.rank == 1 || message.rank == 2) output_.append(index, message.rank, message.text);
      break;
    case Kind::kNote:
      notes_.push_back(message.text);
      break;
    case Kind::kDone:
      host.state = State::kFinished;
      output_.end(index);
      break;
    case Kind::kExit:
      if (exit_request_) break;
      exit_request_ = {message.rank, message.value};
      send_to_all(message);
      break;
    case Kind::kTaken:
      input_.take(static_cast<std::size_t>(message.value));
      break;
    default:
      if (host.has(message.rank)) handle_process(message);
      break;
  }
}

void RemoteExecutor::handle_process(const Message& message) {
  const Ending ending{message.rank, message.process, message.value};
  if (message.kind == Kind::kState) {
    PeerSlot& slot = mirror_.segment_of(message.rank).peer(message.rank);
    slot.pid.store(message.process);
    // Losses are ours to note.
    const auto state = static_cast<PeerState>(message.value);
    if (state != PeerState::kLost && slot.state.load() != PeerState::kLost) slot.state.store(state);
  } else if (message.kind == Kind::kStopped) {
    stops_.push_back({message.rank, message.value});
  } else if (message.kind == Kind::kEnded) {
    running_.erase(message.rank);
    ended_.push_back(ending);
  } else if (message.kind == Kind::kReplaced) {
    replaced_.push_back(ending);
  }
}

void RemoteExecutor::send_orders() {
  has_sent_orders_ = true;
  for (AgentHost& host : hosts_) {
    order_.part.host = host.number;
    host.channel->send({.kind = Kind::kJob, .text = order_.encode()});
    host.state = State::kOrdered;
    host.channel->forgive_silence();
  }
}

void RemoteExecutor::send_to_all(const Message& message) {
  for (AgentHost& host : hosts_)
    if (host.is_open() && host.state != State::kCalled) host.channel->send(message);
}

// A writer without a reader gets SIGPIPE.
void RemoteExecutor::serve_output() {
  output_.flush();
  if (const int error = output_.take_error(); error != 0) {
    if (error != EPIPE)
      say(Status::from_errno("the job's output cannot be written", error).message());
    send_to_all({.kind = Kind::kSignal, .value = SIGPIPE});
  }
  for (AgentHost& host : hosts_)
    for (const int stream : {1, 2})
      if (const std::size_t passed =
              output_.take_passed_on(static_cast<std::size_t>(host.number), stream);
          passed > 0 && host.is_open())
        host.channel->send(
            {.kind = Kind::kTaken, .rank = stream, .value = static_cast<int>(passed)});
}

void RemoteExecutor::check_limits() {
  for (AgentHost& host : hosts_) {
    const bool is_late = host.explanation.has_passed();
    if (host.is_open() && is_late) lose(host);  // its shell ended before it
    if (host.is_unexplained() && (is_late || host.shell_status)) {
      host.explanation = Deadline::never();
      break_down(host, explain_loss(host));
    }
    if (!host.is_open() || host.state == State::kFinished) continue;
    const bool is_awaited = host.state == State::kCalled || host.state == State::kOrdered;
    if (is_awaited && start_.has_passed())
      break_down(host, fmt::format("oshrun did not start there within {} s ({})",
                                   to_seconds(limits_.start), AgentLimits::kStartVariable));
    if (host.state == State::kCalled) continue;
    host.channel->keep_alive(kUsualSilence);
    if (host.state == State::kGreeted) continue;
    if (!host.channel->is_silent(limits_.silence)) continue;
    break_down(host, fmt::format("nothing was heard of it for {} s ({})",
                                 to_seconds(limits_.silence), AgentLimits::kSilenceVariable));
    lose(host);
  }
}

// Its processes have ended with it, or end when it hears nothing any more.
void RemoteExecutor::lose(AgentHost& host) {
  host.lost_in = std::exchange(host.state, State::kGone);
  host.watches = {};
  host.channel.reset();
  output_.end(static_cast<std::size_t>(host.number));
  for (int i = 0; i < host.processes; ++i) running_.erase(host.first_rank + i);
  const bool is_expected = host.lost_in == State::kFinished || breakdown_;
  host.explanation = is_expected ? Deadline::never() : Deadline::after(kExplanationPatience);
}

void RemoteExecutor::break_down(const AgentHost& host, const std::string& reason, int code) {
  if (!breakdown_) breakdown_ = Breakdown{fmt::format("host \"{}\": {}", host.name, reason), code};
}

void RemoteExecutor::watch_writers() {
  for (AgentHost& host : hosts_)
    if (host.is_open())
      host.watches[1].set(host.channel->wants_to_write(), loop_, host.channel->out(), EPOLLOUT);
  for (const int stream : {1, 2})
    output_watches_[static_cast<std::size_t>(stream - 1)].set(output_.is_stalled(stream), loop_,
                                                              stream, EPOLLOUT);
  input_watch_.set(hosts_[0].state == State::kRunning && input_.wants_to_read(), loop_,
                   STDIN_FILENO, EPOLLIN);
}

Deadline RemoteExecutor::deadline() const {
  const auto is_earlier = [](const Deadline& one, const Deadline& other) {
    return one.when() < other.when();
  };
  Deadline earliest = Deadline::after(kUsualSilence / 8);
  if (!has_started()) earliest = std::min(earliest, start_, is_earlier);
  for (const AgentHost& host : hosts_) earliest = std::min(earliest, host.explanation, is_earlier);
  return earliest;
}

bool RemoteExecutor::has_started() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [](const AgentHost& host) { return host.state >= State::kRunning; });
}

bool RemoteExecutor::is_empty() const {
  const bool is_unexplained = std::any_of(
      hosts_.begin(), hosts_.end(), [](const AgentHost& host) { return host.is_unexplained(); });
  return running_.empty() && !is_unexplained && (has_started() || breakdown_);
}

bool RemoteExecutor::is_output_done() const {
  return output_.pending() == 0 &&
         (breakdown_ || std::all_of(hosts_.begin(), hosts_.end(), [](const AgentHost& host) {
            return host.state >= State::kFinished;
          }));
}

void RemoteExecutor::signal_all(int number) {
  if (number == SIGCONT) {
    input_.resume();
    for (AgentHost& host : hosts_)
      if (host.is_open()) host.channel->forgive_silence();
  }
  if (!has_started() && ends_a_job(number) && !breakdown_)
    breakdown_ = Breakdown{
        fmt::format("the job was ended by signal {} while it started", describe_signal(number)),
        128 + number};
  if (ends_a_job(number)) shells_.signal_all(SIGCONT);
  send_to_all({.kind = Kind::kSignal, .value = number});
}

std::vector<Ending> RemoteExecutor::reap() {
  const std::vector<Ending> shells = shells_.reap();
  for (const Ending& shell : shells) {
    AgentHost& host = hosts_[static_cast<std::size_t>(shell.rank)];
    host.shell_status = shell.wait_status;
    if (host.is_open()) host.explanation = Deadline::after(kExplanationPatience);
  }
  if (!shells.empty()) check_limits();  // it may explain a loss
  return std::exchange(ended_, {});
}

void RemoteExecutor::mark_lost(const Ending& ending) {
  if (!mirror_.mark_lost(ending.rank, ending.wait_status)) return;
  send_to_all({.kind = Kind::kLost,
               .rank = ending.rank,
               .process = ending.pid,
               .value = ending.wait_status});
}

}  // namespace memspan::launcher
