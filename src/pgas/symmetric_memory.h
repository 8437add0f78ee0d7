// SPDX-License-Identifier: Apache-2.0
// Collective allocation: every process does the same step on its own heap, and one barrier of the
// world team compares the requests and their outcomes. An asymmetric call is an error that names
// both sides. A shortage fails on all processes, before any memory is taken.
//
// All functions are collective over the world team and one thread at a time. They give the
// address, null on failure with the reason in the Status of the Result.
#pragma once

#include "pgas/team.h"

namespace memspan::inline pgas {

// `bytes` > 0; `alignment` a power of two.
Result<void*> allocate(Team& world_team, const char* what, std::size_t bytes,
                       std::size_t alignment);
// Waits for all, then frees. `pointer` is not null.
Status free(Team& world_team, const char* what, void* pointer);
// As the C function; on failure the old block stays. `pointer` not null, `bytes` > 0.
Result<void*> reallocate(Team& world_team, const char* what, void* pointer, std::size_t bytes);

// Collective allocation in the symmetric heap in memory of a device, as symmetric_memory.h does it
// in that of the host. The first allocation makes the heap, for all or for none.

// In a job that wants a device. `bytes` > 0; `alignment` a power of two. The memory has what is in
// it from before.
Result<void*> allocate_on_device(Team& world_team, const char* what, std::size_t bytes,
                                 std::size_t alignment);
// Zeros in this process's copy.
Status clear_on_device(Team& world_team, void* pointer, std::size_t bytes);
// Waits for all, then frees. `pointer` is not null; kInvalidArgument: it is not a block of this
// heap.
Status free_on_device(Team& world_team, const char* what, void* pointer);

}  // namespace memspan::inline pgas
