// SPDX-License-Identifier: Apache-2.0
// The barrier of a team on several nodes: the members of a node enter in shared memory, the nodes'
// first members (leaders) exchange what was gathered there, write it to their areas and release
// their nodes. Afterwards words and eager buffers of all members can be read as on one node.
//
//   members of a node -> lines in the node's sync area -> leader == messages == other leaders
#pragma once

#include "pgas/team_area.h"

namespace memspan::inline pgas {

// Barrier `sequence`, once this member's line is written.
Status barrier_among_nodes(const TeamArea& area, const char* what, std::uint64_t sequence);
// On the other nodes, if any, ends barrier `sequence` in place of this leader's part in it. `peer`
// is the PE that is lost, or -1.
void fail_among_nodes(const TeamMembers& members, std::uint64_t sequence, Code code, int peer);

}  // namespace memspan::inline pgas
