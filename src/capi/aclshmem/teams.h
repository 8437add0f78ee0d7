// SPDX-License-Identifier: Apache-2.0
// The teams of the CANN SHMEM API by their numbers, which kernels use, too.
#pragma once

#include "pgas/team.h"

namespace memspan::capi {

// Null when it names no team, or before the start.
Team* find_team(int team);
// Ends the process then.
Team& need_team(const char* call, int team);

}  // namespace memspan::capi
