// SPDX-License-Identifier: Apache-2.0
// Where programs meet that read it from MASTER_ADDR and MASTER_PORT (torch.distributed's env://).
#pragma once

#include <string>
#include <vector>

namespace memspan::launcher {

// A port of 127.0.0.1 at which nobody listens now; 0 when there is none.
int free_port();
// Adds MASTER_ADDR and MASTER_PORT to the settings, each unless it is there.
void add_rendezvous(std::vector<std::string>& environment, const std::string& address, int port);

}  // namespace memspan::launcher
