// SPDX-License-Identifier: Apache-2.0
// The command that starts an agent on a host.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "launcher/options.h"

namespace memspan::launcher {

// This program's own file.
std::string own_path();

// The words of `options.remote_shell`, which blanks part, with the host for {} (or behind the last
// one), then oshrun and its option; of this host oshrun alone. kInvalidArgument when oshrun's path
// has characters in it that a shell there would read as its own.
Result<std::vector<std::string>> agent_command(const Options& options, const std::string& host);

}  // namespace memspan::launcher
