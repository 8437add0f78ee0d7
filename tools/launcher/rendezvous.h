// SPDX-License-Identifier: Apache-2.0
// Where programs meet that read it from MASTER_ADDR and MASTER_PORT (torch.distributed's env://).
#pragma once

#include <string>
#include <vector>

namespace memspan::launcher {

// A port of 127.0.0.1 that is free now; 0 when all are taken.
int free_port();
// Adds MASTER_ADDR and MASTER_PORT to the settings, each unless it is set.
void add_rendezvous(std::vector<std::string>& environment, const std::string& address, int port);

}  // namespace memspan::launcher
