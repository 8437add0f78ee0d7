// SPDX-License-Identifier: Apache-2.0
// Which node of the machine memory comes from.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/status.h"

namespace memspan {

// Where the calling thread runs now; 0 on a machine that has no nodes.
int current_node();
// Missing pages of the mapped range come from `node`. kInvalidArgument if this
// machine has no such node. kNotSupported if the system refuses mbind, on a machine with several
// nodes: the pages come from any of them then. With one node nothing depends on mbind.
Status prefer_node(void* base, std::size_t bytes, int node);
// Its result after mbind failed with EPERM or ENOSYS; `online` is the kernel's list ("0-1,4").
Status without_mbind(int node, std::string_view online, int error);

}  // namespace memspan
