// SPDX-License-Identifier: Apache-2.0
// Which host this is: two processes with the same string can share memory.
#pragma once

#include <string>

namespace memspan {

// kernel_identity(), or MEMSPAN_HOST_ID when that is set.
std::string host_identity();

// The kernel's boot id and the network namespace: processes with the same one reach each other's
// abstract Unix sockets, even if MEMSPAN_HOST_ID separates them.
std::string kernel_identity();

// As gethostname(2) gives it; "?" when it gives none. For messages, and to look up an address.
std::string host_name();

}  // namespace memspan
