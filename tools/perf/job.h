// SPDX-License-Identifier: Apache-2.0
// A job of memspan-perf's own: oshrun with this program as its processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "json/json.h"
#include "perf/plan.h"
#include "perf/signals.h"

namespace memspan::perf {

// A value.
struct JobOptions {
  std::string oshrun = {};  // empty: the one beside this program
  int pes = 2;
  std::string simulate_hosts = {};
  std::string hosts = {};
  std::string library = {};  // another libmemspan.so, by its real path; empty: this program's
  double timeout_s = 600;
};

// Runs one and gives each event of PE 0 to `take`, whose failure ends it. Signals during the
// run are forwarded to the job. kUnavailable: its exit code or the signal that ended it; its
// processes have printed the reason to stderr.
Status run_job(const JobOptions& options, const Plan& plan, ForwardedSignals& signals,
               const std::function<Status(const json::Value&)>& take);

// The oshrun that a job is started by: `given`, or the one beside this program. kNotFound names the
// path.
Result<std::string> find_oshrun(const std::string& given);

}  // namespace memspan::perf
