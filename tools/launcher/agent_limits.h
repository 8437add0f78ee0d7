// SPDX-License-Identifier: Apache-2.0
// How long the launcher waits for its agents.
#pragma once

#include "core/clock.h"
#include "core/status.h"
#include "launcher/message_channel.h"

namespace memspan::launcher {

// A value.
struct AgentLimits {
  static constexpr const char* kStartVariable = "MEMSPAN_INIT_TIMEOUT";
  static constexpr const char* kSilenceVariable = "MEMSPAN_SILENCE_LIMIT";

  Duration start = std::chrono::seconds(30);  // until all of them have started their processes
  Duration silence = kUsualSilence;           // of one, and of the launcher for them

  // Reads the variables. A silence shorter than the usual one is that of the processes only.
  static Result<AgentLimits> from_environment();
};

}  // namespace memspan::launcher
