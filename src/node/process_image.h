// SPDX-License-Identifier: Apache-2.0
// Whether a process still runs the program that joined a job. exec() keeps the number of the
// process, its pidfd and its parent, and takes away everything that it had mapped.
#pragma once

#include <sys/types.h>

#include "node/segment.h"

namespace memspan {

// True when `process` lives and does not map `segment` (any more), by /proc/PID/maps. False for one
// that is ending: its parent and its pidfd tell of that. Milliseconds, when much is mapped.
bool has_replaced_program(const NodeSegment& segment, pid_t process);

// The same for the process of `rank`, if it is in the job; then it is noted as lost. True when this
// call noted it. For whoever sees that a connection of `rank` was closed.
bool mark_replaced(const NodeSegment& segment, int rank);

}  // namespace memspan
