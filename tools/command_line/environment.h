// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

namespace memspan {

// The process's environment, as environ(7) has it. Not by the name `environ`: a program that is
// linked for an older glibc (packaging/older_glibc.sh) gets a copy of that variable, and only
// `__environ` is the one that glibc itself reads and writes.
inline char** environment() {
  return __environ;
}

}  // namespace memspan
