// SPDX-License-Identifier: Apache-2.0
// The collectives behind every way to call them, on a team or on an active set. Arguments that no
// collective can work with end the process. Other failures are returned: a death, or under
// SHMEM_DEBUG members' arguments that differ.
#pragma once

#include <cstddef>

#include "pgas/collective/collective.h"
#include "pgas/team.h"

namespace memspan::capi {

struct Elements {
  void* dest;
  const void* source;
  std::size_t count;  // of one member, or of one block
  std::size_t bytes;  // of one
};

struct Collective {
  const char* call;
  Team& team;
  Elements elements;
};

Status barrier(const char* call, Team& team);
Status sync(const char* call, Team& team);
Status broadcast(const Collective& collective, int root, pgas::RootsDest roots_dest);
Status collect(const Collective& collective);
Status fcollect(const Collective& collective);
Status alltoall(const Collective& collective);
Status alltoalls(const Collective& collective, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride);  // in elements
Status reduce(const Collective& collective, const pgas::ReductionKernel& kernel);
Status scan(const Collective& collective, pgas::ScanKind kind, const pgas::ReductionKernel& kernel);

}  // namespace memspan::capi
