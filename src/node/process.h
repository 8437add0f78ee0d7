// SPDX-License-Identifier: Apache-2.0
// Processes of this host: whether one has ended, and which one it is.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "core/fd.h"
#include "core/status.h"

namespace memspan::inline node {

// A descriptor that is readable once the process is gone. It never shows the end of another process
// that got the same number later.
Result<Fd> open_pidfd(pid_t process);

// For other processes: readable or hung up once this process is gone. A pidfd, or, if the system
// refuses that (Linux before 5.3, gVisor, a seccomp profile), the read end of a pipe, which also
// hangs up when this process begins another program. Thread-safe.
Result<Fd> open_own_end();

// True once the process has ended, also while it is a zombie. False while it lives, and for another
// process that got the number later. The number counts in this pid namespace.
bool has_ended(pid_t process);

// A process as the kernel knows it: its number and the pid namespace in which that number counts.
// A value.
struct ProcessIdentity {
  std::int64_t process = 0;
  std::int64_t pid_namespace = 0;  // 0: not known

  static ProcessIdentity own();
  // Whether it may be the process `seen` of this pid namespace. Also true if that is unknown,
  // because its number is from another pid namespace.
  bool may_be(pid_t seen) const;
};

}  // namespace memspan::inline node
