// SPDX-License-Identifier: Apache-2.0
// Which node of the machine memory comes from.
#pragma once

#include <cstddef>

#include "core/status.h"

namespace memspan {

// Where the calling thread runs now; 0 on a machine that has no nodes.
int current_node();
// Pages of the mapped range that are not there yet come from `node`. kInvalidArgument when there is
// no such node, kNotSupported when this system does not let us choose.
Status prefer_node(void* base, std::size_t bytes, int node);

}  // namespace memspan
