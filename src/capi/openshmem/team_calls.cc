// SPDX-License-Identifier: Apache-2.0
// Teams. A team that was split off lives in process_state.teams; its handle is its number there.

#include <openshmem/shmemx.h>

#include "capi/access.h"
#include "capi/errors.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"

namespace memspan::capi {
namespace {

// Team calls report what the arguments or the memory do not allow; a job that is over they cannot.
int failed(const char* call, const Status& status) {
  if (status.code() == Code::kPeerLost || status.code() == Code::kUnavailable)
    fail(call, status);
  else
    log_line(LogLevel::kWarn, std::string(shown_name(call)) + ": " + status.message());
  return 1;
}

int contexts_in(const shmem_team_config_t* config, long mask) {
  return config != nullptr && (mask & SHMEM_TEAM_NUM_CONTEXTS) != 0 ? config->num_contexts : 0;
}

// 0, or a failure. *handle is SHMEM_TEAM_INVALID for those who are not members.
int split(const char* call, Team& parent, const TeamShape& shape, int num_contexts,
          shmem_team_t* handle) {
  auto made = parent.split(call, shape);
  if (!made.is_ok()) return failed(call, made.status());
  if (made.value() == nullptr) return 0;
  made.value()->set_num_contexts(num_contexts);
  auto number = add_team(std::move(made).value());
  if (number == 0) return failed(call, Status(Code::kOutOfMemory, "there are 65536 teams already"));
  *handle = team_handle(number);
  return 0;
}

// Splits the parent into the rows or columns of a grid; a PE is in one of them.
int split_axis(const char* call, Team& parent, int count,
               TeamShape (*shape_of)(int i, int xrange, int size), int xrange, int num_contexts,
               shmem_team_t* handle) {
  int result = 0;
  for (int i = 0; i < count; ++i) {
    shmem_team_t mine = SHMEM_TEAM_INVALID;
    result |= split(call, parent, shape_of(i, xrange, parent.size()), num_contexts, &mine);
    if (mine != SHMEM_TEAM_INVALID) *handle = mine;
  }
  return result;
}

TeamShape row(int y, int xrange, int size) {
  return {y * xrange, 1, std::min(xrange, size - y * xrange)};
}
TeamShape column(int x, int xrange, int size) {
  return {x, xrange, (size - x + xrange - 1) / xrange};
}

// Null for SHMEM_TEAM_INVALID; ends the process for what never was a team.
Team* team_or_null(const char* call, shmem_team_t team) {
  require_started(call);
  return team == SHMEM_TEAM_INVALID ? nullptr : &team_of(call, team);
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_PROFILED(int, team_my_pe, (shmem_team_t team)) {
  Team* found = team_or_null("shmem_team_my_pe", team);
  return found == nullptr ? -1 : found->index();
}

MEMSPAN_PROFILED(int, team_n_pes, (shmem_team_t team)) {
  Team* found = team_or_null("shmem_team_n_pes", team);
  return found == nullptr ? -1 : found->size();
}

MEMSPAN_PROFILED(int, team_get_config,
                 (shmem_team_t team, long config_mask, shmem_team_config_t* config)) {
  Team* found = team_or_null("shmem_team_get_config", team);
  if (found == nullptr) return 1;
  if (config_mask == 0) return 0;
  if (config == nullptr || (config_mask & ~SHMEM_TEAM_NUM_CONTEXTS) != 0) return 1;
  config->num_contexts = found->num_contexts();
  return 0;
}

MEMSPAN_PROFILED(int, team_translate_pe,
                 (shmem_team_t src_team, int src_pe, shmem_team_t dest_team)) {
  Team* from = team_or_null("shmem_team_translate_pe", src_team);
  Team* to = team_or_null("shmem_team_translate_pe", dest_team);
  if (from == nullptr || to == nullptr || src_pe < 0 || src_pe >= from->size()) return -1;
  return to->shape().member_of(from->peer_of(src_pe));
}

MEMSPAN_PROFILED(int, team_split_strided,
                 (shmem_team_t parent_team, int start, int stride, int size,
                  const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team))
try {
  constexpr const char* kCall = "shmem_team_split_strided";
  require_not_null(kCall, "new_team", new_team);
  *new_team = SHMEM_TEAM_INVALID;
  Team* parent = team_or_null(kCall, parent_team);
  if (parent == nullptr) return 1;
  return split(kCall, *parent, TeamShape{start, stride, size}, contexts_in(config, config_mask),
               new_team);
}
MEMSPAN_CATCH(1)

MEMSPAN_PROFILED(int, team_split_2d,
                 (shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config,
                  long xaxis_mask, shmem_team_t* xaxis_team,
                  const shmem_team_config_t* yaxis_config, long yaxis_mask,
                  shmem_team_t* yaxis_team))
try {
  constexpr const char* kCall = "shmem_team_split_2d";
  require_not_null(kCall, "xaxis_team", xaxis_team);
  require_not_null(kCall, "yaxis_team", yaxis_team);
  *xaxis_team = SHMEM_TEAM_INVALID;
  *yaxis_team = SHMEM_TEAM_INVALID;
  Team* parent = team_or_null(kCall, parent_team);
  if (parent == nullptr) return 1;
  if (xrange < 1) return failed(kCall, invalid("xrange is {}, allowed are 1 and more", xrange));
  xrange = std::min(xrange, parent->size());
  int rows = (parent->size() + xrange - 1) / xrange;
  int result = split_axis(kCall, *parent, rows, row, xrange, contexts_in(xaxis_config, xaxis_mask),
                          xaxis_team);
  return result | split_axis(kCall, *parent, xrange, column, xrange,
                             contexts_in(yaxis_config, yaxis_mask), yaxis_team);
}
MEMSPAN_CATCH(1)

MEMSPAN_PROFILED(void, team_destroy, (shmem_team_t team)) try {
  constexpr const char* kCall = "shmem_team_destroy";
  require_started(kCall);
  if (team == SHMEM_TEAM_INVALID) return;
  // A program may not destroy the predefined teams.
  Team* const found = process_state.teams->find(number_of(team));
  if (found == nullptr) end_for_bad_handle(kCall, "team", team);
  process_state.contexts->remove_if(
      [found](const Context& context) { return context.team == found && !context.is_private; });
  require(kCall, found->destroy(kCall));
  remove_team(number_of(team));
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_PROFILED(void*, team_ptr, (shmem_team_t team, const void* dest, int pe)) {
  Team* found = team_or_null("shmem_team_ptr", team);
  if (found == nullptr || pe < 0 || pe >= found->size()) return nullptr;
  return pshmem_ptr(dest, found->peer_of(pe));
}

// ---- what <shmemx.h> adds. Extensions have no profiling aliases.

MEMSPAN_EXPORT int shmemx_set_error_handler(shmemx_error_handler_t handler) {
  set_error_handler(handler);
  return 0;
}

MEMSPAN_EXPORT int shmemx_team_shrink(shmem_team_t team, shmem_team_t* new_team) try {
  constexpr const char* kCall = "shmemx_team_shrink";
  *new_team = SHMEM_TEAM_INVALID;
  require_started(kCall);
  auto made = team_of(kCall, team).shrink(kCall);
  if (made.code() == Code::kOutOfMemory) {
    log_line(LogLevel::kWarn, std::string(kCall) + ": " + made.status().message());
    return 1;
  }
  if (!require(kCall, made.status())) return 1;
  const auto number = add_team(std::move(made).value());
  if (number == 0) return 1;
  *new_team = team_handle(number);
  return 0;
}
MEMSPAN_CATCH(1)
