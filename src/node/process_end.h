// SPDX-License-Identifier: Apache-2.0
// Whether a process that this one knows by its number is over.
#pragma once

#include <sys/types.h>

namespace memspan {

// True once the process has ended, also while its parent has not taken its code. False for one that
// lives, and for another that got the number later. The number counts in this pid namespace.
bool has_ended(pid_t process);

}  // namespace memspan
