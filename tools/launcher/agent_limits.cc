// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent_limits.h"

#include <algorithm>

#include "core/environment.h"
#include "world/carrier_choice.h"

namespace memspan::launcher {
namespace {

constexpr std::int64_t kMostSeconds = 86400;

}  // namespace

Result<AgentLimits> AgentLimits::from_environment() {
  AgentLimits limits;
  MEMSPAN_PASS_ASSIGN(const auto seconds, environment_integer(kStartVariable, 1, kMostSeconds));
  if (seconds) limits.start = std::chrono::seconds(*seconds);
  MEMSPAN_PASS_ASSIGN(const Duration silence, silence_limit());
  limits.silence = std::max(kUsualSilence, silence);
  return limits;
}

}  // namespace memspan::launcher
