// SPDX-License-Identifier: Apache-2.0
#include "node/process_identity.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "core/environment.h"

namespace memspan {

ProcessIdentity ProcessIdentity::own() {
  struct stat info {};
  const bool is_known = stat("/proc/self/ns/pid", &info) == 0;
  return {getpid(), is_known ? static_cast<std::int64_t>(info.st_ino) : 0};
}

bool ProcessIdentity::may_be(pid_t seen) const {
  const ProcessIdentity here = own();
  const bool is_comparable = here.pid_namespace != 0 && here.pid_namespace == pid_namespace;
  return !is_comparable || process == seen;
}

std::string ProcessIdentity::to_string() const {
  return fmt::format("{} {}", process, pid_namespace);
}

Result<ProcessIdentity> ProcessIdentity::parse(std::string_view text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::size_t space = std::min(text.find(' '), text.size());
  MEMSPAN_TRY_ASSIGN(const std::int64_t process,
                     parse_integer("the process", text.substr(0, space), 1, kMost),
                     "the process of a member");
  MEMSPAN_TRY_ASSIGN(
      const std::int64_t pid_namespace,
      parse_integer("the pid namespace", text.substr(std::min(space + 1, text.size())), 0, kMost),
      "the process of a member");
  return ProcessIdentity{process, pid_namespace};
}

}  // namespace memspan
