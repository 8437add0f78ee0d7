// SPDX-License-Identifier: Apache-2.0
#include "node/pidfd.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace memspan {

Result<Fd> open_pidfd(pid_t process) {
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd.is_valid())
    return Status::from_errno(fmt::format("pidfd_open of process {}", process));
  return pidfd;
}

}  // namespace memspan
