// SPDX-License-Identifier: Apache-2.0
// Fence and quiet over the links that were used since the last quiet.
#pragma once

#include "core/status.h"
#include "world/route.h"

namespace memspan::pgas {

Status fence_links(const RouteTable& table);
Status quiet_links(const RouteTable& table);

// Whether any route needs its link asked; decided at join.
bool has_links(const RouteTable& table);

}  // namespace memspan::pgas
