// SPDX-License-Identifier: Apache-2.0
// Shares the main program's variables with the other processes of the job: moves them, and records
// them in the node segment.
#pragma once

#include "core/pages.h"
#include "memory/static_segment.h"
#include "node/segment.h"

namespace memspan {

// In a process that a launcher started: moves the data to this rank's place and records that on the
// segment. Call it before main, while nothing uses the variables. Errors in the launch are left for
// join_launched() to return.
void share_static_segment_at_start();

// Does that in a process that has claimed `rank` and has this index in its node. Moves nothing if
// that was done before main, or in a job of one. Empty if this process's data cannot be symmetric,
// which it logs with the reason.
StaticSegment share_static_segment(const NodeSegment& segment, const Pages& heap, int rank,
                                   int index);

// The offset in the heap memfd of the data of the PE with this index in the node.
std::size_t static_segment_offset(const NodeSegment& segment, int index);

}  // namespace memspan
