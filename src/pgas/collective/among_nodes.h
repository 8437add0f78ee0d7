// SPDX-License-Identifier: Apache-2.0
// The collectives on large data of teams with members on several nodes: inside a node by mapped
// memory, between nodes by one member of each, so that each byte travels to each node once. Data
// that fits the eager buffers needs none of this: it travels with the barrier.
//
// Every member calls them after a barrier that all have entered.
#pragma once

#include <cstddef>
#include <vector>

#include "core/status.h"
#include "pgas/collective/prefix_reduction.h"
#include "pgas/team.h"

namespace memspan::pgas {

// Binomial over the nodes, from the root's; then all members copy from their node's holder.
Status broadcast_among_nodes(Team& team, const char* what, void* dest, const void* source,
                             std::size_t bytes, int root);

// One member's piece of the result.
struct Slot {
  std::size_t offset;  // in dest
  std::size_t bytes;
};
// Writes each member's source to its slot of dest on the near members and on one member of each
// other node, from which the others copy. `slots` has one for each member.
Status gather_among_nodes(Team& team, const char* what, std::byte* dest, const void* source,
                          const std::vector<Slot>& slots);

// Node by node, then by recursive doubling (small) or a ring (large) over the nodes, then all
// members copy. The order of operands is the same for each element wherever it is computed, so that
// all members get the same bits. dest may be source.
Status reduce_among_nodes(const PrefixReduction& all, std::byte* dest, const std::byte* source,
                          std::size_t bytes);

}  // namespace memspan::pgas
