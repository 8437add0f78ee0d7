// SPDX-License-Identifier: Apache-2.0
// Fence and quiet, and the two barriers of all PEs. Mapped memory needs one instruction, whatever
// the context; links that the context used since its last quiet are asked.
#include "pgas/rma.h"

#include <atomic>

#include "capi/access.h"
#include "capi/collective_calls.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"

namespace memspan::capi {
namespace {

inline void fence(const char* call, ContextNumber context = kDefaultContext) {
  std::atomic_thread_fence(std::memory_order_release);
  if (process_state.has_links) [[unlikely]]
    require(call, pgas::fence_links(routes_of(context)));
}

// Sequentially consistent: what was stored before is visible to every PE, not only in order.
inline void quiet(const char* call, ContextNumber context = kDefaultContext) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (process_state.has_links) [[unlikely]]
    require(call, quiet_links(routes_of(context)));
}

// The standard lets the others do nothing with SHMEM_CTX_INVALID.
bool names_operations(const char* call, shmem_ctx_t ctx) {
  if (ctx == SHMEM_CTX_INVALID) return false;
  if (ctx != SHMEM_CTX_DEFAULT && find_context(ctx) == nullptr)
    end_for_bad_handle(call, "ctx", ctx);
  return true;
}

void quiet_peers(const char* call, shmem_ctx_t ctx, const int* peers, std::size_t count) {
  if (count == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    int peer = peer_of(call, ctx, peers[i]);
    if (static_cast<std::uint32_t>(peer) >= process_state.routes.peers)
      end_for_bad_number(call, "target_pes", peers[i], 0,
                         static_cast<long>(process_state.routes.peers) - 1);
  }
  quiet(call, number_of(ctx));
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_PROFILED(void, fence, (void)) try { fence("shmem_fence"); }
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_PROFILED(void, ctx_fence, (shmem_ctx_t ctx)) try {
  if (names_operations("shmem_ctx_fence", ctx)) fence("shmem_ctx_fence", number_of(ctx));
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_PROFILED(void, quiet, (void)) try { quiet("shmem_quiet"); }
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_PROFILED(void, ctx_quiet, (shmem_ctx_t ctx)) try {
  if (names_operations("shmem_ctx_quiet", ctx)) quiet("shmem_ctx_quiet", number_of(ctx));
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_PROFILED(void, pe_quiet, (const int* target_pes, size_t npes)) try {
  quiet_peers("shmem_pe_quiet", SHMEM_CTX_DEFAULT, target_pes, npes);
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_PROFILED(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int* target_pes, size_t npes)) try {
  if (names_operations("shmem_ctx_pe_quiet", ctx))
    quiet_peers("shmem_ctx_pe_quiet", ctx, target_pes, npes);
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_PROFILED(void, barrier_all, (void)) try {
  require_started("shmem_barrier_all");
  require("shmem_barrier_all", barrier("shmem_barrier_all", *process_state.world_team));
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_PROFILED(void, sync_all, (void)) try {
  require_started("shmem_sync_all");
  require("shmem_sync_all", sync("shmem_sync_all", *process_state.world_team));
}
MEMSPAN_CATCH_AND_END(__func__)
MEMSPAN_PROFILED(int, team_sync, (shmem_team_t team)) try {
  constexpr const char* kCall = "shmem_team_sync";
  return outcome(kCall, sync(kCall, team_of(kCall, team)));
}
MEMSPAN_CATCH(1)
