// SPDX-License-Identifier: Apache-2.0
#include "pgas/collective/collective.h"
#include "pgas/collective/exchange.h"

namespace memspan::pgas {
namespace {

// The root's bytes travel in its scratch buffer: one meeting.
Status broadcast_by_scratch(Team& team, const char* what, void* dest, const void* source,
                            std::size_t bytes, int root, RootsDest roots_dest) {
  if (team.index() == root) copy_bytes(team.my_scratch(), source, bytes);
  MEMSPAN_PASS(team.meet_alike(what, {CollectiveKind::kBroadcast, bytes, root}));
  if (team.index() != root || roots_dest == RootsDest::kWritten)
    copy_bytes(dest, team.scratch(root), bytes);
  return Status::ok();
}

// Everybody reads the root's source, between two meetings.
Status broadcast_by_pull(Team& team, const char* what, void* dest, const void* source,
                         std::size_t bytes, int root, RootsDest roots_dest) {
  const RouteTable& table = team.world().routes();
  MEMSPAN_PASS(team.meet_alike(what, {CollectiveKind::kBroadcast, bytes, root}));
  if (team.index() != root)
    MEMSPAN_PASS(get(table, table.route_of(source, team.peer_of(root)), dest, source, bytes));
  else if (dest != source && roots_dest == RootsDest::kWritten)
    std::memmove(dest, source, bytes);
  return team.meet(what);
}

}  // namespace

Status broadcast(Team& team, const char* what, void* dest, const void* source, std::size_t bytes,
                 int root, RootsDest roots_dest) {
  if (bytes <= team.scratch_bytes())
    return broadcast_by_scratch(team, what, dest, source, bytes, root, roots_dest);
  return broadcast_by_pull(team, what, dest, source, bytes, root, roots_dest);
}

}  // namespace memspan::pgas
