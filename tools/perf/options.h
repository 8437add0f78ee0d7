// SPDX-License-Identifier: Apache-2.0
// The command line of memspan-perf.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perf/job.h"
#include "perf/plan.h"

namespace memspan::perf {

// A value.
struct Options {
  Plan plan = {};
  JobOptions job = {};
  std::size_t rounds = 3;
  bool is_json = false;
  std::string worker = {};   // of a process of a job: its plan
  std::string other = {};    // --library: the second libmemspan.so
  std::string compare = {};  // a saved run
  std::string save = {};
  std::string report = {};
  std::string svg = {};
  std::string png = {};
};

// `launcher`: the variable that shows that a launcher started this process, whose job measures;
// null: none did. nullopt: help, the version or the list was asked for, and is printed.
// kInvalidArgument says what is wrong.
Result<std::optional<Options>> parse_options(int argc, const char* const* argv,
                                             const char* launcher);

}  // namespace memspan::perf
