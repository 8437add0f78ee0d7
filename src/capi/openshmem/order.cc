// SPDX-License-Identifier: Apache-2.0
// Fence and quiet, and the two meetings of all PEs. Mapped memory needs one instruction; links,
// where there are any, are asked. They know no contexts, so every context's fence is for all.
#include "pgas/order.h"

#include <atomic>

#include "capi/access.h"
#include "capi/collective_calls.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/twin.h"

namespace memspan::capi {
namespace {

inline void fence(const char* call) {
  std::atomic_thread_fence(std::memory_order_release);
  if (process_state.has_links) [[unlikely]]
    require(call, pgas::fence_links(process_state.routes));
}

// Sequentially consistent: what was stored before is visible to every PE, not only in order.
inline void quiet(const char* call) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (process_state.has_links) [[unlikely]]
    require(call, pgas::quiet_links(process_state.routes));
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
  quiet(call);
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_TWIN(void, fence, (void)) {
  fence("shmem_fence");
}
MEMSPAN_TWIN(void, ctx_fence, (shmem_ctx_t ctx)) {
  if (names_operations("shmem_ctx_fence", ctx)) fence("shmem_ctx_fence");
}
MEMSPAN_TWIN(void, quiet, (void)) {
  quiet("shmem_quiet");
}
MEMSPAN_TWIN(void, ctx_quiet, (shmem_ctx_t ctx)) {
  if (names_operations("shmem_ctx_quiet", ctx)) quiet("shmem_ctx_quiet");
}
MEMSPAN_TWIN(void, pe_quiet, (const int* target_pes, size_t npes)) {
  quiet_peers("shmem_pe_quiet", SHMEM_CTX_DEFAULT, target_pes, npes);
}
MEMSPAN_TWIN(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int* target_pes, size_t npes)) {
  if (names_operations("shmem_ctx_pe_quiet", ctx))
    quiet_peers("shmem_ctx_pe_quiet", ctx, target_pes, npes);
}

MEMSPAN_TWIN(void, barrier_all, (void)) {
  require_started("shmem_barrier_all");
  require("shmem_barrier_all", barrier("shmem_barrier_all", *process_state.world_team));
}
MEMSPAN_TWIN(void, sync_all, (void)) {
  require_started("shmem_sync_all");
  require("shmem_sync_all", sync("shmem_sync_all", *process_state.world_team));
}
MEMSPAN_TWIN(int, team_sync, (shmem_team_t team)) {
  constexpr const char* kCall = "shmem_team_sync";
  return outcome(kCall, sync(kCall, team_of(kCall, team)));
}
