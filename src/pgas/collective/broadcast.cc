// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/among_nodes.h"
#include "pgas/collective/collective.h"
#include "pgas/collective/exchange.h"

namespace memspan::pgas {
namespace {

// The root's bytes travel in its eager buffer: one barrier.
Status broadcast_eagerly(Team& team, const char* what, void* dest, const void* source,
                         std::size_t bytes, int root, RootsDest roots_dest) {
  if (team.index() == root) copy_bytes(team.my_eager_buffer(), source, bytes);
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kBroadcast, bytes, root}));
  if (team.index() != root || roots_dest == RootsDest::kWritten)
    copy_bytes(dest, team.eager_buffer(root), bytes);
  return Status::ok();
}

// Everybody reads the root's source, between two barriers.
Status broadcast_by_pull(Team& team, const char* what, void* dest, const void* source,
                         std::size_t bytes, int root, RootsDest roots_dest) {
  const RouteTable& table = team.world().routes();
  MEMSPAN_PASS(team.barrier_checked(what, {CollectiveKind::kBroadcast, bytes, root}));
  if (team.nodes() != nullptr)
    MEMSPAN_PASS(broadcast_among_nodes(team, what, dest, source, bytes, root));
  else if (team.index() != root)
    MEMSPAN_PASS(get(table, table.route_of(source, team.peer_of(root)), dest, source, bytes));
  if (team.index() == root && dest != source && roots_dest == RootsDest::kWritten)
    std::memmove(dest, source, bytes);
  return team.barrier(what);
}

}  // namespace

Status broadcast(Team& team, const char* what, void* dest, const void* source, std::size_t bytes,
                 int root, RootsDest roots_dest) {
  if (bytes <= team.eager_bytes())
    return broadcast_eagerly(team, what, dest, source, bytes, root, roots_dest);
  return broadcast_by_pull(team, what, dest, source, bytes, root, roots_dest);
}

}  // namespace memspan::pgas
