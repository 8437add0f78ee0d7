// SPDX-License-Identifier: Apache-2.0
// A team of the living members. The first of them, as it sees them, proposes the members and makes
// the new team's area. On several nodes it sends that to the first living member of each other
// node, which proposes the same to its node with an area of its own.
//
// A proposal holds for members that know of no more deaths than it does, and while its maker lives.
// A member that took one that a death has overtaken fails in its first barrier, even if the dead
// member has entered that, and calls again with more deaths to ask for.
//
// If a process dies in that barrier, it may succeed at some members and fail at others. The former
// then shrink the new team, the latter call again for the old one. So these keep the new team,
// propose in both, and take proposals of both. A member that has not taken the proposal looks only
// at the old team, but then the barrier has succeeded nowhere.
#pragma once

#include <memory>
#include <vector>

#include "core/status.h"

namespace memspan::inline pgas {

class Team;

// The attempts of a team at Team::shrink(), which later calls continue.
class TeamShrink {
 public:
  Result<std::unique_ptr<Team>> run(Team& team, const char* what);

 private:
  std::vector<std::unique_ptr<Team>> attempts_;  // whose members could not meet
};

}  // namespace memspan::inline pgas
