// SPDX-License-Identifier: Apache-2.0
// What the processes of a host agree on and share before a World exists: the size of the symmetric
// heaps, when their memory is taken, and the main program's variables.
#pragma once

#include "memory/static_segment.h"
#include "memory/symmetric_heap.h"
#include "node/segment.h"

namespace memspan::inline world {

struct HeapSize {
  std::size_t bytes;
  bool is_default = false;  // else it was asked for
};

// MEMSPAN_COMMIT. kInvalidArgument if it is invalid.
Result<CommitMode> commit_mode_from_environment();
// kInvalidArgument: another process of this node has another mode.
Status check_same_commit_mode(const NodeSegment& segment, CommitMode mode);

// The largest heap on a host with this much memory; `stride` is heap_file_stride().
std::uint64_t most_heap_bytes(std::uint64_t memory_bytes, std::uint64_t stride, CommitMode mode);

// A default size, halved until it is at most that, but for 16 MiB.
std::size_t fitting_default(std::size_t bytes, std::uint64_t most);

// The size for this node's `processes`, a multiple of kHeapGranularity. A default fits
// the memory of the host or control group and the addresses that this process may use
// (ulimit -v), and is what another process of the node has taken. kOutOfMemory: larger than the
// memory; kInvalidArgument: another process asked for another size.
Result<std::size_t> agree_on_heap_size(const NodeSegment& segment, HeapSize wanted, int processes,
                                       CommitMode mode);

// Shares the main program's variables with the other processes of the job: moves them, and records
// them in the node segment.
//
// In a process that a launcher started: moves the data to this rank's place and records that on the
// segment. In others: prepares the data, so that no write is lost when it moves later. Call it
// before main, while nothing uses the variables. Errors in the launch are left for join_launched()
// to return.
void share_static_segment_at_start();

// Does that in a process that has claimed `rank` and has this index in its node. Moves nothing if
// that was done before main, or in a job of one. Empty if this process's data cannot be symmetric,
// which it logs with the reason.
StaticSegment share_static_segment(const NodeSegment& segment, const Pages& heap, int rank,
                                   int index);

// The offset in the heap memfd of the data of the PE with this index in the node.
std::size_t static_segment_offset(const NodeSegment& segment, int index);

}  // namespace memspan::inline world
