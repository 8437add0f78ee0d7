// SPDX-License-Identifier: Apache-2.0
// A descriptor of a process: readable once the process is gone, and never of another process that
// got the same number later.
#pragma once

#include <sys/types.h>

#include "core/fd.h"
#include "core/status.h"

namespace memspan {

Result<Fd> open_pidfd(pid_t process);

}  // namespace memspan
