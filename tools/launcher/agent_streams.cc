// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace memspan::launcher {

Result<AgentOutput> AgentOutput::make(int stream) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe");
  AgentOutput made(stream, Fd(ends[0]));
  const Fd writer(ends[1]);
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 || dup2(writer.get(), stream) != stream)
    return Status::from_errno("preparing the output");
  return made;
}

bool AgentOutput::pass_on(MessageChannel& channel) {
  std::array<char, std::size_t{64} << 10> buffer;
  while (has_window()) {
    const ssize_t count = read(reader_.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    const auto bytes = static_cast<std::size_t>(count);
    on_its_way_ += bytes;
    channel.send({.kind = Kind::kOutput, .rank = stream_, .text = {buffer.data(), bytes}});
  }
  return false;
}

Status AgentInput::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("making a pipe");
  const Fd reader(ends[0]);
  pipe_.reset(ends[1]);
  if (fcntl(pipe_.get(), F_SETFL, O_NONBLOCK) != 0 ||
      dup2(reader.get(), STDIN_FILENO) != STDIN_FILENO)
    return Status::from_errno("preparing the input");
  return Status::ok();
}

void AgentInput::close_own_end() {
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(nothing.get(), STDIN_FILENO);
}

void AgentInput::append(const std::string& text) {
  is_ended_ = is_ended_ || text.empty();
  pending_ += text;
}

void AgentInput::pass_on(MessageChannel& channel) {
  std::size_t done = 0;
  while (!pending_.empty()) {
    const ssize_t count =
        pipe_.is_valid() ? write(pipe_.get(), pending_.data(), pending_.size()) : -1;
    if (count < 0 && pipe_.is_valid() && errno == EINTR) continue;
    if (count < 0 && pipe_.is_valid() && errno == EAGAIN) break;
    if (count < 0) pipe_.reset();
    const std::size_t taken = count < 0 ? pending_.size() : static_cast<std::size_t>(count);
    pending_.erase(0, taken);
    done += taken;
  }
  if (done > 0) channel.send({.kind = Kind::kTaken, .value = static_cast<int>(done)});
  if (is_ended_ && pending_.empty()) pipe_.reset();
}

}  // namespace memspan::launcher
