// SPDX-License-Identifier: Apache-2.0
// The collectives where dest or source is memory of a device: by puts and gets, which the device
// does, and reductions in buffers of the host. They mean what those of collective.h mean.
#pragma once

#include <cstddef>

#include "pgas/collective/collective.h"

namespace memspan::pgas::on_device {

Status broadcast(Team& team, const char* what, void* dest, const void* source, std::size_t bytes,
                 int root, RootsDest roots_dest);
Status fcollect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes);
Status collect(Team& team, const char* what, void* dest, const void* source, std::size_t bytes);
Status alltoall(Team& team, const char* what, void* dest, const void* source,
                std::size_t block_bytes);
Status alltoalls(Team& team, const char* what, void* dest, const void* source,
                 std::ptrdiff_t dest_stride, std::ptrdiff_t source_stride, std::size_t count,
                 std::size_t element_bytes);
Status reduce(Team& team, const char* what, void* dest, const void* source, std::size_t count,
              const ReductionKernel& kernel);
Status scan(Team& team, const char* what, void* dest, const void* source, ScanKind kind,
            std::size_t count, const ReductionKernel& kernel);

}  // namespace memspan::pgas::on_device
