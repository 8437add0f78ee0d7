// SPDX-License-Identifier: Apache-2.0
#include "launcher/terminal_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace memspan::launcher {

Result<TerminalInput> TerminalInput::make(Fd& reader) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Status::from_errno("making a pipe for the terminal's input");
  reader.reset(ends[0]);
  Fd writer(ends[1]);
  if (fcntl(writer.get(), F_SETFL, O_NONBLOCK) != 0)
    return Status::from_errno("making a pipe for the terminal's input");
  return TerminalInput(std::move(writer));
}

bool TerminalInput::advance() {
  if (pending_.empty()) {
    if (tcgetpgrp(STDIN_FILENO) != getpgrp()) return false;
    char buffer[4096];
    ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count > 0)
      pending_.assign(buffer, static_cast<std::size_t>(count));
    else if (count == 0 || (errno != EINTR && errno != EAGAIN))
      pipe_.reset();
  }
  while (is_open() && !pending_.empty()) {
    ssize_t count = write(pipe_.get(), pending_.data(), pending_.size());
    if (count > 0)
      pending_.erase(0, static_cast<std::size_t>(count));
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      pipe_.reset();
  }
  return true;
}

}  // namespace memspan::launcher
