// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "pgas/collective/collective.h"
#include "pgas/collective/pushes.h"

namespace memspan::pgas {

Status barrier(Team& team, const char* what) {
  // On mapped memory the barrier's release and acquire make all earlier puts visible to all.
  MEMSPAN_PASS(complete_pushes(team));
  return team.barrier(what);
}

Status sync(Team& team, const char* what) {
  return team.barrier(what);
}

}  // namespace memspan::pgas
