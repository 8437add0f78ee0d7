// SPDX-License-Identifier: Apache-2.0
// Collective allocation in the symmetric heap in memory of a device, as symmetric_memory.h does it
// in that of the host. The first allocation makes the heap, for all or for none.
#pragma once

#include <cstddef>

#include "core/status.h"
#include "pgas/team.h"

namespace memspan::pgas {

// In a job that wants a device. `bytes` > 0; `alignment` a power of two. The memory has what is in
// it from before.
Result<void*> allocate_on_device(Team& world_team, const char* what, std::size_t bytes,
                                 std::size_t alignment);
// Zeros in this process's copy.
Status clear_on_device(Team& world_team, void* pointer, std::size_t bytes);
// Waits for all, then frees. `pointer` is not null; kInvalidArgument: it is not a block of this
// heap.
Status free_on_device(Team& world_team, const char* what, void* pointer);

}  // namespace memspan::pgas
