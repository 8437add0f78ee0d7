// SPDX-License-Identifier: Apache-2.0
// A process as the kernel knows it: its number and the pid namespace in which that number counts.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace memspan {

// A value.
struct ProcessIdentity {
  std::int64_t process = 0;
  std::int64_t pid_namespace = 0;  // 0: not known

  static ProcessIdentity own();
  // Whether it may be the process `seen` of this pid namespace. Also true if that is unknown,
  // because its number is from another pid namespace.
  bool may_be(pid_t seen) const;
};

}  // namespace memspan
