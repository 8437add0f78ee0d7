// SPDX-License-Identifier: Apache-2.0
#include "node/process_identity.h"

#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace memspan
