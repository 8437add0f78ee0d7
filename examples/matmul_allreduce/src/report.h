// SPDX-License-Identifier: Apache-2.0
// What the user reads. Rank 0 prints, in the ranks' order.
#pragma once

#include "job.h"

namespace matmul {

// Bytes that one rank sends to others (and receives) in a reduction.
double reduction_bytes(const JobSpec& spec);

// Collective. True when every element of every rank is right.
bool print_report(const Options& options, const JobSpec& spec, const Place& place,
                  const Outcome& outcome);

}  // namespace matmul
