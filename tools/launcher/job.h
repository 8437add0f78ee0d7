// SPDX-License-Identifier: Apache-2.0
// What the processes of a job on this host are started with: their programs, the nodes with their
// segments and heaps, and their environment. Made before the first of them is started.
#pragma once

#include <sys/resource.h>

#include <optional>
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

// Which rank is on which of several hosts.
NodeMap map_of_hosts(const Options& options);

// Descriptors for children get numbers from here on, so that scripts that use 3 to 9 do not
// close them by accident.
inline constexpr int kFirstChildDescriptor = 64;
Result<Fd> duplicate_high(int descriptor);

// The part of one host in a job of several. A value.
struct HostPart {
  int host = 0;           // a number in Options::hosts
  std::string store_url;  // of the job's store; empty in a job on one host
  std::string secret;     // of the store, as in a node segment
  // The meeting point of programs that read it from MASTER_ADDR and MASTER_PORT.
  std::string master;
  int master_port = 0;
};

// A variable that says a process's rank or the job's size.
struct NumberVariable;

// Owns the job's shared memory. One thread at a time.
class Job {
 public:
  // Without a part: all hosts are this one.
  static Result<Job> make(Options options, std::optional<HostPart> part = {});

  const Options& options() const { return options_; }
  // The file of options().programs[i].
  const std::string& file(std::size_t i) const { return files_[i]; }
  int size() const { return options_.processes(); }
  // The ranks that are this host's.
  int first_rank() const { return first_rank_; }
  int count() const { return count_; }
  bool has(int rank) const { return rank >= first_rank_ && rank < first_rank_ + count_; }
  Channel channel() const { return channel_; }
  const Nodes& nodes() const { return nodes_; }
  // One core for each rank of this host; empty when no process is bound.
  const std::vector<int>& cores() const { return cores_; }
  // The limit on open files as it was, for the processes; the launcher's own was raised.
  const rlimit& open_files() const { return open_files_; }
  // The environment of `rank`, which runs options().programs[program] and whose socket to the store
  // has the number `store`.
  std::vector<std::string> environment_of(std::size_t program, int rank, int store) const;

 private:
  // The variables of one program's processes; `common` lacks those that are set for each rank.
  struct Environment {
    std::vector<std::string> common;
    std::vector<const NumberVariable*> numbers;  // those, as far as the user did not set them
  };
  Job(Options options, Channel channel, Nodes nodes)
      : options_(std::move(options)), channel_(channel), nodes_(std::move(nodes)) {}
  static Environment environment_for(const Program& program, Channel channel, bool has_hosts);
  Options options_;
  std::string store_url_;
  int first_rank_ = 0;
  int count_ = 0;
  Channel channel_;
  std::vector<std::string> files_;
  Nodes nodes_;
  rlimit open_files_{};
  std::vector<int> cores_;
  std::vector<Environment> environments_;  // by program
};

}  // namespace memspan::launcher
