// SPDX-License-Identifier: Apache-2.0
// Where programs meet that read it from MASTER_ADDR and MASTER_PORT (torch.distributed's env://).
#pragma once

#include <string>
#include <vector>

namespace memspan::launcher {

// Adds MASTER_ADDR (127.0.0.1) and MASTER_PORT (nobody listens at it now) to the settings, each
// unless it is there.
void add_rendezvous(std::vector<std::string>& environment);

}  // namespace memspan::launcher
