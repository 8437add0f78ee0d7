// SPDX-License-Identifier: Apache-2.0
#include "node/process_end.h"

#include <poll.h>

#include <csignal>

#include "node/pidfd.h"

namespace memspan {

bool has_ended(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  const auto descriptor = open_pidfd(process);
  if (!descriptor.is_ok()) return kill(process, 0) != 0 && errno == ESRCH;
  pollfd ended{descriptor->get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;  // also of a zombie
}

}  // namespace memspan
