// SPDX-License-Identifier: Apache-2.0
// Whether a process known by its number has ended.
#pragma once

#include <sys/types.h>

namespace memspan {

// True once the process has ended, also while it is a zombie. False while it lives, and for another
// process that got the number later. The number counts in this pid namespace.
bool has_ended(pid_t process);

}  // namespace memspan
