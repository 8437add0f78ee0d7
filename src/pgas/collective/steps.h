// SPDX-License-Identifier: Apache-2.0
// Steps that the collectives share: moving data to and from members' memory by the routes of a
// table, combining their elements, and the ways among nodes.
#pragma once

#include "pgas/collective/collective.h"
#include "pgas/rma.h"

namespace memspan::inline pgas {

// The routes of the library itself, or, if dest or source is memory of a device, those of the
// program: only these reach it, but they cost more.
inline const RouteTable& routes_for(const Team& team, const void* dest, const void* source) {
  const World& world = team.world();
  const bool is_on_device =
      world.wants_device() && (world.program_routes().is_on_device(dest, 0) ||
                               world.program_routes().is_on_device(source, 0));
  return is_on_device ? world.program_routes() : world.routes();
}

// Writes to `member`'s copy of `dest`. Within this process the ranges may be the same.
inline Status push(Team& team, const RouteTable& table, int member, void* dest, const void* source,
                   std::size_t bytes) {
  if (bytes == 0) return Status::ok();
  const Route& route = table.route_of(dest, team.peer_of(member));
  if (member != team.index()) return put(table, route, dest, source, bytes);
  if (dest == source) return Status::ok();
  if (!route.is_direct()) return put(table, route, dest, source, bytes);  // memory of a device
  std::memmove(dest, source, bytes);
  return Status::ok();
}

// Reads `member`'s copy of `source`.
inline Status pull(Team& team, const RouteTable& table, int member, void* dest, const void* source,
                   std::size_t bytes) {
  if (bytes == 0) return Status::ok();
  return get(table, table.route_of(source, team.peer_of(member)), dest, source, bytes);
}

// Everything pushed so far has arrived once this and a barrier are over.
inline Status complete_pushes(const RouteTable& table) {
  return has_links(table) ? quiet_links(table) : Status::ok();
}

// The i-th member to serve, starting after this one, so that not all members serve the same first.
inline int member_after(const Team& team, int i) {
  return (team.index() + i) % team.size();
}

inline Status push_to_all(Team& team, const RouteTable& table, void* dest, const void* source,
                          std::size_t bytes) {
  for (int i = 0; i < team.size(); ++i)
    MEMSPAN_PASS(push(team, table, member_after(team, i), dest, source, bytes));
  return Status::ok();
}

// The ways among nodes are for memory of the host.
inline bool goes_among_nodes(const Team& team, const RouteTable& table) {
  return team.nodes() != nullptr && table.device == nullptr;
}

// Combines elements of the first so many members of a team in member order: for reductions (all
// members) and scans (those up to this one).
struct PrefixReduction {
  Team& team;
  const char* what;
  const ReductionKernel& kernel;
  CollectiveKind kind;
  const RouteTable& table;
  int members;                  // how many; none give zeros
  const int* listed = nullptr;  // those of this node; null: members 0 to members - 1

  // The bytes of as many whole elements as fit; one does (kernels.h).
  std::size_t whole_elements(std::size_t room) const { return room / kernel.bytes * kernel.bytes; }
};

// The words of a flag that carry so many bytes.
inline int words_for(std::size_t bytes) {
  return static_cast<int>((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
}

// Not collective: combines slice `index` of as many as there are members, and writes it to `dest`
// on all members, or on the first one listed. `dest` may be `source`: only this member reads or
// writes that slice.
Status reduce_slice(const PrefixReduction& all, int index, std::byte* dest, const std::byte* source,
                    std::size_t bytes);

// The collectives on large data of teams with members on several nodes: inside a node by mapped
// memory, between nodes by one member of each, so that each byte travels to each node once. Data
// that fits the eager buffers needs none of this: it travels with the barrier.
//
// Every member calls them after a barrier that all have entered.

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

}  // namespace memspan::inline pgas
