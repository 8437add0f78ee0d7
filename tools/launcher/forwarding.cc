// SPDX-License-Identifier: Apache-2.0
#include "launcher/forwarding.h"

#include <fcntl.h>
#include <fmt/format.h>
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

}  // namespace

Channel choose_channel(const Options& options) {
  const bool is_live = options.buffering == Buffering::kLive;
  if (options.label == Label::kRank) return is_live ? Channel::kTerminal : Channel::kPipe;
  return is_live && !is_character_device(STDOUT_FILENO) ? Channel::kTerminal : Channel::kOwn;
}

Result<std::unique_ptr<Forwarding>> Forwarding::make(const Options& options, Channel channel,
                                                     EventLoop& loop) {
  auto made = std::unique_ptr<Forwarding>(new Forwarding(options, channel, loop));
  if (made->label_ == Label::kNone && channel == Channel::kTerminal) {
    auto leader = made->open_terminal(made->streams_[0], "");
    if (leader.is_ok())
      made->keeper_ = std::move(*leader);
    else  // a root without pseudo-terminals: lines come, only later
      made->channel_ = Channel::kOwn;
  }
  return made;
}

Forwarding::Forwarding(const Options& options, Channel channel, EventLoop& loop)
    : label_(options.label), channel_(channel), loop_(loop) {}

Status Forwarding::add_source(Stream& stream, const std::string& label, Fd reader) {
  stream.sources.emplace_back(label, stream.sink, std::move(reader));
  Status status = watch(stream, stream.sources.size() - 1);
  if (!status.is_ok()) stream.sources.pop_back();
  return status;
}

Status Forwarding::watch(Stream& stream, std::size_t source) {
  ForwardedOutput& output = stream.sources[source];
  return output.watch().start(loop_, output.descriptor(), EPOLLIN,
                              [this, &stream, source](std::uint32_t) { serve(stream, source); });
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
  MEMSPAN_PASS_ASSIGN(auto reader, open_pseudo_terminal());
  auto writer = open_terminal_writer(reader.get());
  if (!writer.is_ok()) return writer.status();
  MEMSPAN_PASS(add_source(stream, label, std::move(reader)));
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

// A full sink takes nothing until flush() has emptied it.
void Forwarding::serve(Stream& stream, std::size_t source) {
  if (!stream.sink.is_full()) return stream.sources[source].drain();
  stream.sources[source].watch().stop();
  stream.has_paused = true;
}

void Forwarding::flush() {
  for (Stream& stream : streams_) flush(stream);
}

void Forwarding::flush(Stream& stream) {
  stream.sink.flush();
  stream.target.set(stream.sink.pending() > 0, loop_, stream.sink.target(), EPOLLOUT);
  if (!stream.has_paused || stream.sink.is_full()) return;
  stream.has_paused = false;
  for (std::size_t i = 0; i < stream.sources.size(); ++i)
    if (stream.sources[i].is_open())
      if (Status status = watch(stream, i); !status.is_ok())
        log_line(LogLevel::kError, status.to_string());
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
