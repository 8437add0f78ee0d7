// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "pgas/collective/collective.h"
#include "pgas/collective/exchange.h"

namespace memspan::pgas {

Status barrier(Team& team, const char* what) {
  // On mapped memory the meeting's release and acquire make all earlier puts visible to all.
  MEMSPAN_PASS(complete_pushes(team));
  return team.meet(what);
}

Status sync(Team& team, const char* what) {
  return team.meet(what);
}

}  // namespace memspan::pgas
