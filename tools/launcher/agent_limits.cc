// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent_limits.h"

#include "core/environment.h"

namespace memspan::launcher {
namespace {

constexpr std::int64_t kMostSeconds = 86400;

Status read_limit(const char* name, Duration& limit) {
  const auto seconds = environment_integer(name, 1, kMostSeconds);
  if (seconds.is_ok() && *seconds) limit = std::chrono::seconds(**seconds);
  return seconds.status();
}

}  // namespace

Result<AgentLimits> AgentLimits::from_environment() {
  AgentLimits limits;
  MEMSPAN_PASS(read_limit(kStartVariable, limits.start));
  MEMSPAN_PASS(read_limit(kSilenceVariable, limits.silence));
  return limits;
}

}  // namespace memspan::launcher
