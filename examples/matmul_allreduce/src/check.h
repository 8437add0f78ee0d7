// SPDX-License-Identifier: Apache-2.0
// The verdict over all ranks. Each rank compares its share of the rows with the reference, and
// every other rank's copy of that share with its own, bit by bit: so every element of every
// rank's result is checked, and the reference of each is computed once.
#pragma once

#include <cstdint>
#include <vector>

#include "verify.h"
#include "workspace.h"

namespace matmul {

struct FormVerdict {
  std::vector<std::uint64_t> wrong;  // elements, in each rank's result
  Comparison all;                    // over all shares; the place is this rank's first wrong one
};

struct Verdict {
  FormVerdict separate, fused;
  double seconds = 0;        // of this rank
  bool is_complete = false;  // false: no memory for it
};

// Collective.
Verdict check_results(const JobSpec& spec, const Place& place, const Workspace& workspace);

}  // namespace matmul
