// SPDX-License-Identifier: Apache-2.0
// Giving the main program's variables to the other processes of the job: where they are moved to,
// and what the node segment says of them.
#pragma once

#include "device/pages.h"
#include "memory/static_segment.h"
#include "node/segment.h"

namespace memspan {

// In a process that a launcher started: moves the data to this rank's place and says so on the
// segment. To be called before main, so that nothing uses the variables yet; what is wrong with the
// launch is for join_launched() to say.
void share_static_segment_at_start();

// The same in a process that has claimed `rank` and has this index in its node; moves nothing when
// that was done before main, or in a job of one. Empty when this process's data cannot be
// symmetric, with a line that says why.
StaticSegment share_static_segment(const NodeSegment& segment, const Pages& heap, int rank,
                                   int index);

// Where the data of the PE with this index in the node are in the heap memfd.
std::size_t static_segment_offset(const NodeSegment& segment, int index);

}  // namespace memspan
