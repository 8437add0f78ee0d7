// SPDX-License-Identifier: Apache-2.0
// memspan-info --route A B: the way between two processes, or from this host to another one,
// without a job.
#pragma once

#include <string>

#include "info/finding.h"
#include "info/settings.h"
#include "system_files/system_files.h"

namespace memspan::info {

// Each end is the number of a process of this host that runs, or a host's name or address. Two
// ways: of memory that memspan allocated, and of memory that a program registered for transfers.
// kInvalidArgument names an end that is neither, and two that are both other hosts.
Result<Findings> gather_route(const std::string& from, const std::string& to);

// The facts that decide the routes between two processes. A value.
struct ProcessFacts {
  std::string name = {};      // "process 4711 (python3)"
  bool is_process = false;    // else a host, of which nothing else is known
  bool is_this_host = false;  // a process with our own identity, or a host that is this one
  std::string host = {};      // MEMSPAN_HOST_ID, or the network namespace
  std::string address = {};   // of a host: numeric
  std::string network = {};   // its namespace
  std::string pid_namespace = {};
  std::uint64_t user = 0;
  std::uint64_t capabilities = 0;  // effective
  Settings settings = {};          // that it was started with; of a host our own
};
// Reads /proc/PID. kInvalidArgument when the process does not exist, kAuth when this user may not
// read it.
Result<ProcessFacts> facts_of_process(const SystemFiles& files, std::uint64_t process);
// Judges two of them, one of which is a process or this host: the routes, and their reasons. The
// settings of processes decide. Those of hosts decide only between hosts, because a process on a
// host must have its peer's settings. One thread at a time: it changes the environment while it
// runs.
Findings compare(const SystemFiles& files, const ProcessFacts& from, const ProcessFacts& to);

}  // namespace memspan::info
