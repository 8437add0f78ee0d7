// SPDX-License-Identifier: Apache-2.0
// Steps that the ways of becoming a member share. Used by membership.cc, rendezvous.cc and
// host_sharing.cc.
#pragma once

#include <functional>
#include <memory>

#include "core/status.h"
#include "device/pages.h"
#include "world/board.h"
#include "world/hand_over.h"
#include "world/membership.h"

namespace memspan {

// What the keeper of a host makes.
struct HostMemory {
  std::unique_ptr<Board> board;
  std::unique_ptr<Pages> heap;
};
Result<HostMemory> make_host_memory(int peers);

// Enters this process on the board. kUnavailable when the rank is taken or its process died.
Status claim_rank(const Board& board, int rank);

// Gives `joined` the host's memory, its place there and a detector. Members exchange texts three
// times, all as often, over `channel`; while the keeper waits for somebody it asks `check`, whose
// failure ends that. What fails for one fails for all.
Status share_host(Membership& joined, const Exchange& exchange, Channel channel,
                  const std::function<Status()>& check, Deadline deadline);

}  // namespace memspan
