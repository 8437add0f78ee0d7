// SPDX-License-Identifier: Apache-2.0
// oshrun --agent: starts a job's processes on one host, for the oshrun at the other end of its
// stdin and stdout (message_channel.h), and reports their states. It decides nothing; when that
// oshrun is gone it ends the processes.
#pragma once

namespace memspan::launcher {

inline constexpr const char* kAgentOption = "--agent";

// Returns what the program returns.
int run_agent();

}  // namespace memspan::launcher
