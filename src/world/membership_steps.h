// SPDX-License-Identifier: Apache-2.0
// Steps that the ways of becoming a member share. Used by membership.cc, rendezvous.cc,
// launcher_rendezvous.cc and host_sharing.cc.
#pragma once

#include <functional>
#include <memory>

#include "core/pages.h"
#include "core/status.h"
#include "node/segment.h"
#include "world/membership.h"

namespace memspan {

// Opens the job's store at that endpoint.
Result<std::unique_ptr<StoreServer>> listen_for_job(const Rendezvous& rendezvous,
                                                    const Endpoint& endpoint);

// The memory that a node leader makes.
struct NodeMemory {
  std::unique_ptr<NodeSegment> segment;
  std::unique_ptr<Pages> heap;
};
// For a job of `peers` PEs of which `near` are on this node.
Result<NodeMemory> make_host_memory(int peers, int near);

// Enters this process on the segment. kUnavailable when the rank is taken or its process died.
Status claim_rank(const NodeSegment& segment, int rank);

// Gives `joined` its node's memory, its place there and a detector. Every member exchanges texts
// three times; `channel` is the kind of `exchange`. While the leader waits for a member it calls
// `check`, whose failure ends the wait. A failure of one member fails all.
Status share_host(Membership& joined, const Exchange& exchange, Channel channel,
                  const std::function<Status()>& check, Deadline deadline);

}  // namespace memspan
