// SPDX-License-Identifier: Apache-2.0
// Collectives over a team. All are blocking, called by every member in the same order, one thread
// at a time per team. Sizes are in bytes unless said; sources and destinations are symmetric, in
// memory of the host or of a device. `what` names the call in messages.
#pragma once

#include "pgas/reduction/kernels.h"
#include "pgas/team.h"

namespace memspan::inline pgas {

// Completes this process's puts, then waits for all members (TeamBarrier::barrier() only waits).
Status barrier(Team& team, const char* what);

// Member `root`'s source to every dest; the caller decides about the root's own.
enum class RootsDest { kWritten, kLeft };
Status broadcast(Team& team, const char* what, void* dest, const void* source, std::size_t bytes,
                 int root, RootsDest roots_dest = RootsDest::kWritten);

// Member i's `bytes` bytes to every member's dest + i * bytes.
Status fcollect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes);

// As fcollect, with a size of its own for each member, one after the other.
Status collect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes);
// Block j of member i to block i of member j.
Status alltoall(Team& team, const char* what, void* dest, const void* source,
                std::size_t block_bytes);
// As alltoall with elements of `element_bytes` at strides counted in elements.
Status alltoalls(Team& team, const char* what, void* dest, const void* source,
                 std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride, std::size_t count,
                 std::size_t element_bytes);

// Element-wise over all members' sources, in member order, so that the result is the same bits on
// every member; dest may be source.
Status reduce(Team& team, const char* what, void* dest, const void* source, std::size_t count,
              const ReductionKernel& kernel);

// Prefixes in member order: member i gets the reduction of members 0 to i (inclusive) or to i - 1
// (exclusive; member 0 gets zeros). dest may be source.
enum class ScanKind { kInclusive, kExclusive };
Status scan(Team& team, const char* what, void* dest, const void* source, ScanKind kind,
            std::size_t count, const ReductionKernel& kernel);

}  // namespace memspan::inline pgas
