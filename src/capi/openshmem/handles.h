// SPDX-License-Identifier: Apache-2.0
// What the handles of the OpenSHMEM API name: constants for what always exists, else the number
// of an entry in a HandleTable.
#pragma once

#include <openshmem/shmem.h>

#include "capi/failures.h"
#include "capi/process_state.h"

namespace memspan::capi {

inline std::uint64_t number_of(shmem_team_t team) {
  return reinterpret_cast<std::uintptr_t>(team);
}
inline std::uint64_t number_of(shmem_ctx_t ctx) {
  return reinterpret_cast<std::uintptr_t>(ctx);
}
inline shmem_team_t team_handle(std::uint64_t number) {
  return reinterpret_cast<shmem_team_t>(number);
}

// Null when it names no team.
inline Team* find_team(shmem_team_t team) {
  if (team == SHMEM_TEAM_WORLD) return process_state.world_team;
  if (team == SHMEM_TEAM_SHARED) return process_state.shared_team;
  return process_state.teams == nullptr ? nullptr : process_state.teams->find(number_of(team));
}

// Ends the process when it names no team.
inline Team& team_of(const char* call, shmem_team_t team) {
  Team* found = find_team(team);
  if (found == nullptr) [[unlikely]]
    end_for_bad_handle(call, "team", team);
  return *found;
}

// Null for SHMEM_CTX_INVALID, SHMEM_CTX_DEFAULT and what names no context.
inline Context* find_context(shmem_ctx_t ctx) {
  return process_state.contexts == nullptr ? nullptr : process_state.contexts->find(number_of(ctx));
}

// The peer behind `pe` of a context that is not the default one; ends the process for an invalid
// one.
int peer_through_context(const char* call, shmem_ctx_t ctx, int pe);

inline int peer_of(const char* call, shmem_ctx_t ctx, int pe) {
  if (ctx == SHMEM_CTX_DEFAULT) [[likely]]
    return pe;
  return peer_through_context(call, ctx, pe);
}

}  // namespace memspan::capi
