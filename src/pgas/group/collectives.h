// SPDX-License-Identifier: Apache-2.0
// Collectives of a ProcessGroup on ordinary memory. All are blocking and called by every member in
// the same order, one thread at a time; include/memspan/group.h says what each does. Lists have an
// entry for each member. Arguments that only one member gets wrong (a root, a null) are its own
// failure, before it communicates.
#pragma once

#include <cstddef>

#include "core/status.h"
#include "pgas/group/process_group.h"
#include "pgas/reduction/kernels.h"

namespace memspan::pgas {

Status group_barrier(ProcessGroup& group);

Status group_broadcast(ProcessGroup& group, void* values, std::size_t bytes, int root);
Status group_all_gather(ProcessGroup& group, void* const results[], const void* values,
                        std::size_t bytes);
Status group_gather(ProcessGroup& group, void* const results[], const void* values,
                    std::size_t bytes, int root);
Status group_scatter(ProcessGroup& group, void* result, const void* const values[],
                     std::size_t bytes, int root);
Status group_all_to_all(ProcessGroup& group, void* const results[],
                        const std::size_t result_bytes[], const void* const values[],
                        const std::size_t value_bytes[]);

Status group_all_reduce(ProcessGroup& group, void* result, const void* values, std::size_t count,
                        const ReductionKernel& elements);
Status group_reduce(ProcessGroup& group, void* result, const void* values, std::size_t count,
                    const ReductionKernel& elements, int root);
Status group_reduce_scatter(ProcessGroup& group, void* result, const void* const values[],
                            std::size_t count, const ReductionKernel& elements);

}  // namespace memspan::pgas
