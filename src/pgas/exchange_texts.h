// SPDX-License-Identifier: Apache-2.0
// An all-gather of short texts among the members of a team, by the words that its barriers carry:
// for what is done once in a job.
#pragma once

#include <cstddef>

#include "core/agreement.h"
#include "pgas/team.h"

namespace memspan::pgas {

// Longer texts are cut.
inline constexpr std::size_t kMostTextBytes = 2048;

// `what` names the call in messages; both must outlive it. One thread at a time.
Exchange exchange_by_barriers(Team& team, const char* what);

}  // namespace memspan::pgas
