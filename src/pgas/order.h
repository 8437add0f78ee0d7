// SPDX-License-Identifier: Apache-2.0
// Fence and quiet over all routes of a process.
#pragma once

#include <atomic>

#include "core/status.h"
#include "world/route.h"

namespace memspan::pgas {

Status fence_links(const RouteTable& table);
Status quiet_links(const RouteTable& table);

// Whether any route needs its link asked; decided at join.
bool has_links(const RouteTable& table);

}  // namespace memspan::pgas
