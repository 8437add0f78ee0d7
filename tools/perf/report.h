// SPDX-License-Identifier: Apache-2.0
// A run as one page of HTML that needs nothing else: plots, tables, the machine and what it does
// without memspan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perf/compare.h"
#include "perf/run.h"

namespace memspan::perf {

// The other side of a comparison. A value.
struct Compared {
  Run run;
  Pairing pairing;
  std::vector<Ratio> ratios;
};

std::string to_html(const Run& run, const std::optional<Compared>& compared);

}  // namespace memspan::perf
