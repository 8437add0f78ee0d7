// SPDX-License-Identifier: Apache-2.0
// Starting one process: like posix_spawn, plus what that cannot do (binding to a core, dying
// with the launcher).
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"

namespace memspan::launcher {

// The settings of one process. A value; descriptors stay the caller's.
struct Start {
  std::vector<std::string> environment;
  int input = -1;  // becomes its stdin, stdout, stderr; -1: the launcher's own
  int output = -1;
  int errors = -1;
  std::vector<int> inherited;  // descriptors that it keeps under the same numbers
  int core = -1;               // -1: not bound
};

// The settings of all processes of one program: the file, its working directory (empty: ours) and
// the limit on open files that they get back. One thread at a time.
class Spawner {
 public:
  Spawner(std::string program, std::vector<std::string> arguments, std::string folder,
          const rlimit& open_files);

  // The new process leads a process group of its own, has no signal blocked, and is killed when the
  // launcher dies.
  // Returns after its exec: kNotFound when that failed, so a bad program is an error here and
  // not a strange exit later. All signals that the launcher handles must be blocked.
  Result<pid_t> spawn(const Start& start);

 private:
  std::string program_;
  std::vector<std::string> arguments_;
  std::string folder_;
  rlimit open_files_;
  std::unique_ptr<std::byte[]> stack_;  // of the child
};

}  // namespace memspan::launcher
