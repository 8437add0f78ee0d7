// SPDX-License-Identifier: Apache-2.0
// Descriptors that show the end of a process, and never that of another process that got the same
// number later.
#pragma once

#include <sys/types.h>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

// Readable once the process is gone.
Result<Fd> open_pidfd(pid_t process);

// For other processes: readable or hung up once this process is gone. A pidfd, or, if the system
// refuses that (Linux before 5.3, gVisor, a seccomp profile), the read end of a pipe, which also
// hangs up when this process begins another program. Thread-safe.
Result<Fd> open_own_end();

}  // namespace memspan
