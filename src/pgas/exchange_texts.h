// SPDX-License-Identifier: Apache-2.0
// Texts of all members of a team, by barriers.
#pragma once

#include "core/agreement.h"
#include "pgas/team.h"

namespace memspan {

// An all-gather of short texts among the members, by the words that the barriers of `team` carry:
// for what is done once in a job. Longer texts are cut. `what` names the call in messages; both
// must outlive it. One thread at a time.
inline constexpr std::size_t kMostTextBytes = 2048;
Exchange exchange_by_barriers(Team& team, const char* what);

}  // namespace memspan
