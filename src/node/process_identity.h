// SPDX-License-Identifier: Apache-2.0
// A process as the kernel knows it: its number and the pid namespace in which that number counts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memspan {

// A value.
struct ProcessIdentity {
  std::int64_t process;
  std::int64_t pid_namespace;  // 0: not known

  static ProcessIdentity own();
  // Whether `seen`, a process as this one counts them, may be it. True also when that cannot be
  // told, because it counts in another pid namespace than this process.
  bool may_be(pid_t seen) const;
  std::string to_string() const;  // "PROCESS NAMESPACE", for parse()
  static Result<ProcessIdentity> parse(std::string_view text);
};

}  // namespace memspan
