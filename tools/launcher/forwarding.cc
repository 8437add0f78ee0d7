// SPDX-License-Identifier: Apache-2.0
#include "launcher/forwarding.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "launcher/pseudo_terminal.h"

namespace memspan::launcher {
namespace {

bool is_character_device(int descriptor) {
  struct stat info {};
  return fstat(descriptor, &info) == 0 && S_ISCHR(info.st_mode);
}

Status control(const Fd& epoll, int operation, int descriptor, std::uint32_t events,
               std::uint32_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = tag;
  if (epoll_ctl(epoll.get(), operation, descriptor, &event) != 0)
    return Status::from_errno("watching the processes' output");
  return Status::ok();
}

}  // namespace

Channel choose_channel(const Options& options) {
  const bool is_live = options.buffering == Buffering::kLive;
  if (options.label == Label::kRank) return is_live ? Channel::kTerminal : Channel::kPipe;
  return is_live && !is_character_device(STDOUT_FILENO) ? Channel::kTerminal : Channel::kOwn;
}

Result<std::unique_ptr<Forwarding>> Forwarding::make(const Options& options, Channel channel) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_valid()) return Status::from_errno("epoll_create1");
  auto made = std::unique_ptr<Forwarding>(new Forwarding(options, channel, std::move(epoll)));
  for (Stream& stream : made->streams_) {
    stream.epoll.reset(epoll_create1(EPOLL_CLOEXEC));
    if (!stream.epoll.is_valid()) return Status::from_errno("epoll_create1");
    MEMSPAN_PASS(control(made->epoll_, EPOLL_CTL_ADD, stream.epoll.get(), EPOLLIN, 0));
  }
  if (made->label_ == Label::kNone && channel == Channel::kTerminal) {
    auto leader = made->open_terminal(made->streams_[0], "");
    if (leader.is_ok())
      made->keeper_ = std::move(*leader);
    else  // a root without pseudo-terminals: lines come, only later
      made->channel_ = Channel::kOwn;
  }
  return made;
}

Forwarding::Forwarding(const Options& options, Channel channel, Fd epoll)
    : label_(options.label), channel_(channel), epoll_(std::move(epoll)) {}

Status Forwarding::add_source(Stream& stream, const std::string& label, Fd reader) {
  MEMSPAN_PASS(control(stream.epoll, EPOLL_CTL_ADD, reader.get(), EPOLLIN,
                       static_cast<std::uint32_t>(stream.sources.size())));
  stream.sources.emplace_back(label, stream.sink, std::move(reader));
  return Status::ok();
}

Result<Fd> Forwarding::open_pipe(Stream& stream, const std::string& label) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe for --label");
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  // Only our end: the process must see an ordinary blocking pipe.
  if (fcntl(reader.get(), F_SETFL, O_NONBLOCK) != 0)
    return Status::from_errno("making a pipe for --label");
  MEMSPAN_PASS(add_source(stream, label, std::move(reader)));
  return writer;
}

Result<Fd> Forwarding::open_terminal(Stream& stream, const std::string& label) {
  auto reader = open_pseudo_terminal();
  if (!reader.is_ok()) return reader.status();
  auto writer = open_terminal_writer(reader->get());
  if (!writer.is_ok()) return writer.status();
  MEMSPAN_PASS(add_source(stream, label, std::move(*reader)));
  return writer;
}

Status Forwarding::open(int rank, Fd& output, Fd& errors) {
  if (label_ == Label::kNone) {
    if (channel_ != Channel::kTerminal) return Status::ok();
    MEMSPAN_TRY_ASSIGN(output, open_terminal_writer(streams_[0].sources[0].descriptor()),
                       "connecting the output");
    return Status::ok();
  }
  const std::string label = fmt::format("[{}] ", rank);
  if (channel_ == Channel::kTerminal) {
    auto writer = open_terminal(streams_[0], label);
    if (writer.is_ok())
      output = std::move(*writer);
    else  // no more pseudo-terminals (kernel.pty.max): the rest have pipes
      channel_ = Channel::kPipe;
  }
  if (channel_ == Channel::kPipe) {
    MEMSPAN_TRY_ASSIGN(output, open_pipe(streams_[0], label), "connecting the output");
  }
  MEMSPAN_TRY_ASSIGN(errors, open_pipe(streams_[1], label), "connecting the output");
  return Status::ok();
}

void Forwarding::serve() {
  for (Stream& stream : streams_) {
    if (stream.is_read) read_sources(stream);
    flush(stream);
  }
}

void Forwarding::read_sources(Stream& stream) {
  std::array<epoll_event, 64> events{};
  const int count =
      epoll_wait(stream.epoll.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i)
    stream.sources[events[static_cast<std::size_t>(i)].data.u32].drain();
}

// Writes available data, and watches what is needed next: the sources, the reader, or both.
void Forwarding::flush(Stream& stream) {
  stream.sink.flush();
  const bool is_read = !stream.sink.is_full();
  if (is_read != std::exchange(stream.is_read, is_read)) {
    Status status =
        control(epoll_, is_read ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, stream.epoll.get(), EPOLLIN, 0);
    if (!status.is_ok()) log_line(LogLevel::kError, status.to_string());
  }
  const bool is_stalled = stream.sink.pending() > 0;
  if (is_stalled != std::exchange(stream.is_stalled, is_stalled)) {
    Status status = control(epoll_, is_stalled ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
                            stream.sink.target(), EPOLLOUT, 0);
    if (!status.is_ok()) log_line(LogLevel::kError, status.to_string());
  }
}

void Forwarding::finish(int rank) {
  for (Stream& stream : streams_) {
    if (stream.sources.empty()) continue;
    ForwardedOutput& source =
        stream.sources[label_ == Label::kNone ? 0 : static_cast<std::size_t>(rank)];
    source.finish();
    if (label_ == Label::kRank) source.close();
    flush(stream);
  }
}

void Forwarding::finish_all() {
  for (Stream& stream : streams_) {
    for (ForwardedOutput& source : stream.sources) {
      source.finish();
      source.close();
    }
    flush(stream);
  }
}

std::size_t Forwarding::pending() const {
  return streams_[0].sink.pending() + streams_[1].sink.pending();
}

int Forwarding::lost_reader() const {
  for (const Stream& stream : streams_)
    if (!stream.is_abandoned && stream.sink.error() != 0) return stream.sink.error();
  return 0;
}

void Forwarding::close_lost() {
  for (Stream& stream : streams_) {
    if (stream.sink.error() == 0) continue;
    stream.is_abandoned = true;
    for (ForwardedOutput& source : stream.sources) source.close();
  }
}

}  // namespace memspan::launcher
