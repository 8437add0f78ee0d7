// SPDX-License-Identifier: Apache-2.0
// The teams of the CANN SHMEM API by their numbers, which kernels also use.
#pragma once

#include <memory>

#include "capi/process_state.h"
#include "pgas/team.h"

namespace memspan::capi {

// Returns the team's number, 0 when there are too many. Also shows it to kernels on devices.
TeamTable::Handle add_team(std::unique_ptr<Team> team);
void remove_team(TeamTable::Handle number);

// Null when it names no team, or before the start.
Team* find_team(int team);
// Ends the process then.
Team& need_team(const char* call, int team);

}  // namespace memspan::capi
