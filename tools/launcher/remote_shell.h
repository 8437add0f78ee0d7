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

// The words of `options.remote_shell`, separated by blanks, with the host for {} (or after the last
// one), then oshrun and its option. For this host only oshrun and its option. kInvalidArgument when
// oshrun's path has characters that a remote shell would interpret.
Result<std::vector<std::string>> agent_command(const Options& options, const std::string& host);

}  // namespace memspan::launcher
