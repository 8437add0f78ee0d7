// SPDX-License-Identifier: Apache-2.0
// What the processes of a job are started with: their programs, the nodes with their segments and
// heaps, and their environment. Made before the first of them is started.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include "core/fd.h"
#include "core/status.h"
#include "launcher/forwarding.h"
#include "launcher/nodes.h"
#include "launcher/options.h"

namespace memspan::launcher {

// The file that a shell in `folder` would run for `name`: with a slash as it is, else the first
// executable in PATH. kNotFound says what was looked for.
Result<std::string> find_program(const std::string& name, const std::string& folder);

// Descriptors for children get numbers from here on, so that scripts that use 3 to 9 do not
// close them by accident.
inline constexpr int kFirstChildDescriptor = 64;
Result<Fd> duplicate_high(int descriptor);

// A variable that says a process's rank or the job's size.
struct NumberVariable;

// Owns the job's shared memory. One thread at a time.
class Job {
 public:
  static Result<Job> make(Options options);

  const Options& options() const { return options_; }
  // Of options().programs[i], the file.
  const std::string& file(std::size_t i) const { return files_[i]; }
  int size() const { return options_.processes(); }
  Channel channel() const { return channel_; }
  const Nodes& nodes() const { return nodes_; }
  // Empty when nobody is bound, else one core a rank.
  const std::vector<int>& cores() const { return cores_; }
  // The limit on open files as it was, for the processes; the launcher's own was raised.
  const rlimit& open_files() const { return open_files_; }
  // The environment of `rank`, which runs options().programs[program] and whose socket to the store
  // has the number `store`.
  std::vector<std::string> environment_of(std::size_t program, int rank, int store) const;

 private:
  // What the processes of one program get; a variable that is set for each rank is not in `common`.
  struct Environment {
    std::vector<std::string> common;
    std::vector<const NumberVariable*> numbers;  // those, as far as the user did not set them
  };
  Job(Options options, Channel channel, Nodes nodes)
      : options_(std::move(options)), channel_(channel), nodes_(std::move(nodes)) {}
  static Environment environment_for(const Program& program, Channel channel, bool is_simulation);
  Options options_;
  Channel channel_;
  std::vector<std::string> files_;
  Nodes nodes_;
  rlimit open_files_{};
  std::vector<int> cores_;
  std::vector<Environment> environments_;  // by program
};

}  // namespace memspan::launcher
