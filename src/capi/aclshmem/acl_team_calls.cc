// SPDX-License-Identifier: Apache-2.0
// Teams of the CANN SHMEM API: 0 is all, other numbers are those of process_state.teams.

#include "capi/aclshmem/export.h"
#include "capi/errors.h"
#include "capi/failures.h"
#include "capi/kernel/device_job.h"
#include "capi/process_state.h"
#include "capi/smem/stream_table.h"

namespace memspan::capi {

TeamTable::Handle add_team(std::unique_ptr<Team> team) {
  const Team& added = *team;
  const TeamTable::Handle number = process_state.teams->add(std::move(team));
  if (number != 0) show_team(static_cast<int>(number), added);
  return number;
}

void remove_team(TeamTable::Handle number) {
  hide_team(static_cast<int>(number));
  process_state.teams->remove(number);
}

Team* find_team(int team) {
  if (team == SHMEM_TEAM_WORLD) return process_state.world_team;
  if (team < 0 || process_state.teams == nullptr) return nullptr;
  return process_state.teams->find(static_cast<std::uint64_t>(team));
}

Team& need_team(const char* call, int team) {
  Team* const found = find_team(team);
  if (found != nullptr) return *found;
  require_started(call);
  end_for_bad_number(call, "team", team, 0, 0);
}

namespace {

int bad_team(const char* call, shmem_team_t team) {
  if (!is_started())
    return shmem_failure(
        call, SHMEM_NOT_INITED,
        std::string("called before shmem_init_attr or after shmem_finalize") + kNotInAJob);
  return shmem_failure(call, SHMEM_INVALID_PARAM, "team is {}, which names no team", team);
}

// Local. *handle keeps SHMEM_TEAM_INVALID for those who are not members.
int split(const char* call, const Team& parent, const TeamShape& shape, shmem_team_t* handle) {
  if (shape.member_of(parent.index()) < 0) return 0;
  const auto number = add_team(Team::local(*process_state.local_teams, parent.shape().part(shape)));
  if (number == 0) return shmem_failure(call, SHMEM_INNER_ERROR, "there are 65536 teams already");
  *handle = static_cast<shmem_team_t>(number);
  return 0;
}

bool is_allowed(const TeamShape& shape, int parent_size) {
  std::int64_t last = shape.start + static_cast<std::int64_t>(shape.size - 1) * shape.stride;
  return shape.start >= 0 && shape.stride >= 1 && shape.size >= 1 && shape.size <= parent_size &&
         last < parent_size;
}

template <typename Config>
int get_config(const char* call, shmem_team_t team, Config* config) try {
  if (config == nullptr) return shmem_failure(call, SHMEM_INVALID_PARAM, "config is NULL");
  Team* found = find_team(team);
  if (found == nullptr) return bad_team(call, team);
  *config = {};
  config->num_contexts = found->num_contexts();
  return 0;
}
MEMSPAN_CATCH_IN(call, SHMEM_MALLOC_FAILED)

// Nothing for SHMEM_TEAM_INVALID.
template <typename Collective>
void meet(const char* call, shmem_team_t team, Collective collective) try {
  if (team == SHMEM_TEAM_INVALID) return;
  Team& found = need_team(call, team);
  finish_default_stream();
  require(call, collective(call, found));
}
MEMSPAN_CATCH_AND_END(call)

}  // namespace
}  // namespace memspan::capi

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int aclshmem_team_split_strided(shmem_team_t parent_team, int pe_start,
                                               int pe_stride, int pe_size,
                                               shmem_team_t* new_team) try {
  constexpr const char* kCall = "shmem_team_split_strided";
  if (new_team == nullptr) return shmem_failure(kCall, SHMEM_INVALID_PARAM, "new_team is NULL");
  *new_team = SHMEM_TEAM_INVALID;
  Team* parent = capi::find_team(parent_team);
  if (parent == nullptr) return bad_team(kCall, parent_team);
  TeamShape shape{pe_start, pe_stride, pe_size};
  if (!is_allowed(shape, parent->size()))
    return shmem_failure(kCall, SHMEM_INVALID_PARAM,
                         "start {}, stride {}, size {} do not fit into a team of {}", pe_start,
                         pe_stride, pe_size, parent->size());
  return split(kCall, *parent, shape, new_team);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmem_team_split_2d(shmem_team_t parent_team, int x_range,
                                          shmem_team_t* x_team, shmem_team_t* y_team) try {
  constexpr const char* kCall = "shmem_team_split_2d";
  if (x_team == nullptr || y_team == nullptr)
    return shmem_failure(kCall, SHMEM_INVALID_PARAM, "x_team or y_team is NULL");
  *x_team = *y_team = SHMEM_TEAM_INVALID;
  Team* parent = capi::find_team(parent_team);
  if (parent == nullptr) return bad_team(kCall, parent_team);
  if (x_range <= 0)
    return shmem_failure(kCall, SHMEM_INVALID_PARAM, "x_range is {}, allowed are 1 and more",
                         x_range);
  const int size = parent->size();
  const int width = std::min(x_range, size);
  const int x = parent->index() % width;
  const int first = parent->index() - x;  // of this PE's row
  const TeamShape row{first, 1, std::min(width, size - first)};
  if (int failure = split(kCall, *parent, row, x_team); failure != 0) return failure;
  return split(kCall, *parent, TeamShape{x, width, (size - x + width - 1) / width}, y_team);
}
MEMSPAN_CATCH(SHMEM_MALLOC_FAILED)

MEMSPAN_EXPORT int aclshmem_team_get_config(aclshmem_team_t team, aclshmem_team_config_t* config) {
  return get_config("aclshmem_team_get_config", team, config);
}
MEMSPAN_EXPORT int aclshmemx_early_team_get_config(shmem_team_t team, shmem_team_config_t* config) {
  return get_config("shmem_team_get_config", team, config);
}

MEMSPAN_EXPORT void aclshmem_team_destroy(shmem_team_t team) try {
  constexpr const char* kCall = "shmem_team_destroy";
  Team* found = capi::find_team(team);
  if (found == nullptr) return static_cast<void>(bad_team(kCall, team));
  if (team == SHMEM_TEAM_WORLD)
    return static_cast<void>(
        shmem_failure(kCall, SHMEM_INVALID_PARAM, "the team of all is not one to destroy"));
  auto number = static_cast<std::uint64_t>(team);
  // The OpenSHMEM API may have made contexts of it.
  process_state.contexts->remove_if([found](const Context& c) { return c.team == found; });
  require(kCall, found->destroy(kCall));
  remove_team(number);
}
MEMSPAN_CATCH()

MEMSPAN_EXPORT void aclshmem_barrier(aclshmem_team_t team) {
  meet(__func__, team, capi::barrier);
}
MEMSPAN_EXPORT void aclshmem_sync(aclshmem_team_t team) {
  meet(__func__, team, capi::sync);
}
MEMSPAN_EXPORT void aclshmem_barrier_all(void) {
  meet(__func__, ACLSHMEM_TEAM_WORLD, capi::barrier);
}
MEMSPAN_EXPORT void aclshmem_sync_all(void) {
  meet(__func__, ACLSHMEM_TEAM_WORLD, capi::sync);
}
