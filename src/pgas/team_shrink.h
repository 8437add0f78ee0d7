// SPDX-License-Identifier: Apache-2.0
// A team of the living members. The first of them, as it sees them, proposes the members and makes
// the new team's area. On several nodes it sends that to the first living member of each other
// node, which proposes the same to its node with an area of its own.
//
// A proposal holds for members that know of no more deaths than it does, and while its maker lives.
// A member that took one that a death has overtaken fails in its first barrier, and calls again
// with more deaths to ask for.
//
// If a process dies in that barrier, it may succeed at some members and fail at others. The former
// then shrink the new team, the latter call again for the old one. So these keep the new team,
// propose in both, and take proposals of both. A member that has not taken the proposal looks only
// at the old team, but then the barrier has succeeded nowhere.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"

namespace memspan {

class Team;
class World;

// How a team makes others of its living members.
class TeamShrink : NotCopyable {
 public:
  explicit TeamShrink(Team& team);
  // Team::shrink().
  Result<std::unique_ptr<Team>> run(const char* what);

 private:
  // The contents of a proposal, before the new team's area.
  struct Living;
  // The team and those of the living that could not meet, in which others may have succeeded.
  std::vector<Team*> teams() const;
  Status propose(Living& living);
  Status propose_living();
  // The proposal that the PE `maker` on another node has sent to this one, if it can hold.
  std::optional<Living> proposal_of(int maker);

  Team& team_;
  World& world_;
  std::vector<std::unique_ptr<Team>> attempts_;  // that could not meet
};

}  // namespace memspan
