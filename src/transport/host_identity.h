// SPDX-License-Identifier: Apache-2.0
// Which host this is: two processes with the same string can share memory.
#pragma once

#include <string>

namespace memspan {

// The kernel's boot id and the network namespace, or MEMSPAN_HOST_ID when that is set.
std::string host_identity();

}  // namespace memspan
