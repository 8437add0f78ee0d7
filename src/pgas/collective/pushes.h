// SPDX-License-Identifier: Apache-2.0
// Steps that the collectives share: pushing to a member's memory and completing what was pushed.
#pragma once

#include <cstddef>

#include "core/status.h"
#include "pgas/order.h"
#include "pgas/rma.h"
#include "pgas/team.h"

namespace memspan::pgas {

// Writes to `member`'s copy of `dest`. Within this process the ranges may be the same.
inline Status push(Team& team, int member, void* dest, const void* source, std::size_t bytes) {
  const RouteTable& table = team.world().routes();
  const Route& route = table.route_of(dest, team.peer_of(member));
  if (member != team.index()) return put(table, route, dest, source, bytes);
  if (dest != source && bytes != 0) std::memmove(dest, source, bytes);
  return Status::ok();
}

// Everything pushed so far has arrived once this and a barrier are over.
inline Status complete_pushes(Team& team) {
  const RouteTable& table = team.world().routes();
  return has_links(table) ? quiet_links(table) : Status::ok();
}

// The i-th member to serve, starting after this one, so that not all members serve the same first.
inline int member_after(const Team& team, int i) {
  return (team.index() + i) % team.size();
}

}  // namespace memspan::pgas
