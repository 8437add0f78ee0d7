// SPDX-License-Identifier: Apache-2.0
// Steps that the three ways of becoming a member share. Used by membership.cc and rendezvous.cc.
#pragma once

#include <memory>

#include "core/status.h"
#include "device/pages.h"
#include "world/board.h"

namespace memspan {

// What the keeper of a host makes.
struct HostMemory {
  std::unique_ptr<Board> board;
  std::unique_ptr<Pages> heap;
};
Result<HostMemory> make_host_memory(int peers);

// Enters this process on the board. kUnavailable when the rank is taken or its process died.
Status claim_rank(const Board& board, int rank);

}  // namespace memspan
