// SPDX-License-Identifier: Apache-2.0
// The two collectives that every API binding has. Other failures than a caller's mistake, which
// ends the process, are returned: a death, or under SHMEM_DEBUG members in different calls.
#pragma once

#include "pgas/team.h"

namespace memspan::capi {

// Completes this PE's puts first, kernels' on devices included.
Status barrier(const char* call, Team& team);
Status sync(const char* call, Team& team);

}  // namespace memspan::capi
