// SPDX-License-Identifier: Apache-2.0
// The launcher's stdin on its way to rank 0 on another host.
#pragma once

#include <cstddef>

#include "launcher/message_channel.h"

namespace memspan::launcher {

// One thread.
class LauncherInput {
 public:
  bool wants_to_read() const { return !is_ended_ && !is_paused_ && on_its_way_ < kWindowBytes; }
  // Sends available input within the window; never waits. A terminal is not read in the background.
  void pass_on(MessageChannel& channel);
  // The agent has passed on so many bytes.
  void take(std::size_t bytes);
  // We are in the foreground again.
  void resume() { is_paused_ = false; }

 private:
  bool is_ended_ = false;
  bool is_paused_ = false;
  std::size_t on_its_way_ = 0;
};

}  // namespace memspan::launcher
