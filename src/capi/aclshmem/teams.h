// SPDX-License-Identifier: Apache-2.0
// What calls of the CANN SHMEM API share with kernels: its teams by their numbers, and the stream
// of calls that name none.
#pragma once

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

// Until all that was given to the stream of calls that name none is done: host calls come after it.
// At once in its own work, and where nothing was ever given to it.
void finish_default_stream();

}  // namespace memspan::capi
