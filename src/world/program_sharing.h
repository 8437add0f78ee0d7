// SPDX-License-Identifier: Apache-2.0
// Giving the main program's variables to the other processes of the job: where they are moved to,
// and what the board says of them.
#pragma once

#include "device/pages.h"
#include "memory/program_data.h"
#include "world/board.h"

namespace memspan {

// In a process that a launcher started: moves the data to this rank's place and says so on the
// board. To be called before main, so that nothing uses the variables yet; what is wrong with the
// launch is for join_launched() to say.
void share_program_data_at_start();

// The same in a process that has claimed `rank`; moves nothing when that was done before main, or
// in a job of one. Empty when this process's data cannot be symmetric, with a line that says why.
ProgramData share_program_data(const Board& board, const Pages& heap, int rank);

// Where rank's data are in the heap memfd.
std::size_t program_data_offset(const Board& board, int rank);

}  // namespace memspan
