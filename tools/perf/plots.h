// SPDX-License-Identifier: Apache-2.0
// Which plots a run has.
#pragma once

#include <string>
#include <vector>

#include "perf/plot.h"
#include "perf/run.h"

namespace memspan::perf {

// A value: `name` is that of the file.
struct NamedPlot {
  std::string name;
  std::string group;  // of tests, as a heading
  std::string svg;
};

// A plot for each test with sizes, and one for all operations without; `there`, when not null, is
// drawn beside.
std::vector<NamedPlot> plots_of(const Run& here, const Run* there, Place place);

}  // namespace memspan::perf
