// SPDX-License-Identifier: Apache-2.0
#include "launcher/launcher_input.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace memspan::launcher {

void LauncherInput::pass_on(MessageChannel& channel) {
  std::array<char, std::size_t{16} << 10> buffer;
  while (wants_to_read()) {
    pollfd ready{STDIN_FILENO, POLLIN, 0};
    if (poll(&ready, 1, 0) != 1) return;
    is_paused_ = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) != getpgrp();
    if (is_paused_) return;
    const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    is_ended_ = count <= 0;
    const std::size_t bytes = is_ended_ ? 0 : static_cast<std::size_t>(count);
    on_its_way_ += bytes;
    channel.send({.kind = Kind::kInput, .text = {buffer.data(), bytes}});
  }
}

void LauncherInput::take(std::size_t bytes) {
  on_its_way_ -= std::min(bytes, on_its_way_);
}

}  // namespace memspan::launcher
