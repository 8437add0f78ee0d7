// SPDX-License-Identifier: Apache-2.0
// Lists of hosts, as other launchers take them: a job runs on this host, so a list may name no
// other.
#pragma once

#include <string>

#include "core/status.h"

namespace memspan::launcher {

// "localhost,node1:4": names with or without a number of slots. `option` is for the message.
Status check_hosts(const std::string& option, const std::string& list);
// One host a line, "#" begins a comment, what follows the name is left alone ("slots=4").
Status check_host_file(const std::string& option, const std::string& path);

}  // namespace memspan::launcher
