// SPDX-License-Identifier: Apache-2.0
// Whether a process still runs the program that joined a job. exec() keeps the number of the
// process, its pidfd and its parent, and takes away everything that it had mapped.
#pragma once

#include <sys/types.h>

#include "node/segment.h"

namespace memspan {

// True if `process` lives and does not map `segment` (any more), by /proc/PID/maps. False if it is
// ending, which its parent and its pidfd report. Takes milliseconds if much is mapped.
bool has_replaced_program(const NodeSegment& segment, pid_t process);

// Marks `rank` as lost if it is in the job and its process replaced its program. True if this call
// marked it. Call it after a connection of `rank` was closed.
bool mark_replaced(const NodeSegment& segment, int rank);

}  // namespace memspan
