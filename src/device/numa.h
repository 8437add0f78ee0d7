// SPDX-License-Identifier: Apache-2.0
// Chooses the NUMA node that memory comes from.
#pragma once

#include <cstddef>

#include "core/status.h"

namespace memspan {

// The node on which the calling thread runs now; 0 on a machine without nodes.
int current_node();
// Takes missing pages of the mapped range from `node`. kInvalidArgument if this machine has no such
// node. kNotSupported if the system refuses mbind on a machine with several nodes: the pages then
// come from any node. With one node nothing depends on mbind.
Status prefer_node(void* base, std::size_t bytes, int node);
// The result after mbind failed with EPERM or ENOSYS; `online` is the kernel's list ("0-1,4").
Status without_mbind(int node, std::string_view online, int error);

}  // namespace memspan
