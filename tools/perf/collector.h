// SPDX-License-Identifier: Apache-2.0
// The events of a side's jobs, a job a round, as a run.
#pragma once

#include <string>
#include <vector>

#include "perf/events.h"
#include "perf/plan.h"
#include "perf/run.h"

namespace memspan::perf {

// One thread.
class Collector {
 public:
  // kInvalidArgument for a line that is no event, or one without all of its members.
  Status take(const json::Value& event);
  // After the last job; `hosts` as Run has them.
  Run finish(std::string command, const Plan& plan, std::string hosts) const;

 private:
  struct Pooled {
    std::string test;
    std::size_t bytes = 0;
    std::size_t batch = 1;
    std::vector<double> ns;
    std::vector<double> medians;
  };
  void add(const Row& row);

  Run run_;
  std::vector<Baselines> baselines_;
  std::vector<Pooled> pooled_;
};

}  // namespace memspan::perf
