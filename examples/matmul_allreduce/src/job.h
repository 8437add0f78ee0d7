// SPDX-License-Identifier: Apache-2.0
// The job from its memory to its measurements: makes the inputs, runs and times both forms.
#pragma once

#include "check.h"
#include "memory_need.h"
#include "options.h"
#include "verify.h"
#include "workspace.h"

namespace matmul {

// Seconds of one rank, each the median over the repetitions.
struct Times {
  double multiply = 0;  // the product alone
  double reduce = 0;    // the reduction alone, begun when all products are ready
  double separate = 0;  // from the start of the product to the end of the reduction
  double fused = 0;
};

struct Outcome {
  const char* failure = nullptr;  // why there is no result
  bool is_everywhere = false;     // a failure that all ranks have alike
  int repetitions = 0;
  const char* library = "";  // that multiplied
  Times times;
  Verdict verdict;
};

// Collective.
Outcome run_job(const Options& options, const JobSpec& spec, const Place& place,
                const MemoryNeed& need);

// Rank 0's number, on every rank. Collective.
int agree(int number);

}  // namespace matmul
