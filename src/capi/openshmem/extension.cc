// SPDX-License-Identifier: Apache-2.0
// What <shmemx.h> adds. Extensions have no profiling aliases.
#include <openshmem/shmemx.h>

#include <utility>

#include "capi/aclshmem/teams.h"
#include "capi/openshmem/handles.h"
#include "capi/out_of_memory.h"
#include "core/log.h"

using namespace memspan::capi;

MEMSPAN_EXPORT int shmemx_set_error_handler(shmemx_error_handler_t handler) {
  set_error_handler(handler);
  return 0;
}

MEMSPAN_EXPORT int shmemx_team_shrink(shmem_team_t team, shmem_team_t* new_team) try {
  constexpr const char* kCall = "shmemx_team_shrink";
  *new_team = SHMEM_TEAM_INVALID;
  require_started(kCall);
  auto made = team_of(kCall, team).shrink(kCall);
  if (made.code() == memspan::Code::kOutOfMemory) {
    memspan::log_line(memspan::LogLevel::kWarn,
                      std::string(kCall) + ": " + made.status().message());
    return 1;
  }
  if (!require(kCall, made.status())) return 1;
  const auto number = memspan::capi::add_team(std::move(made).value());
  if (number == 0) return 1;
  *new_team = team_handle(number);
  return 0;
}
MEMSPAN_CATCH(1)
