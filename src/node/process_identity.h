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
  // Whether it may be the process `seen` of this pid namespace. Also true if that is unknown,
  // because its number is from another pid namespace.
  bool may_be(pid_t seen) const;
  std::string to_string() const;  // "PROCESS NAMESPACE", for parse()
  static Result<ProcessIdentity> parse(std::string_view text);
};

}  // namespace memspan
