// SPDX-License-Identifier: Apache-2.0
// A question at another process's door, waited for.
#pragma once

#include <string>
#include <string_view>

#include "core/clock.h"
#include "fabric/door.h"

namespace memspan::transfer {

// As Door::ask(); kTimeout when there is no answer, as from a process that is stopped. Not for the
// door's thread.
Result<DoorAnswer> ask_and_wait(Door& door, const std::string& ticket, std::string_view name,
                                Deadline deadline);

}  // namespace memspan::transfer
