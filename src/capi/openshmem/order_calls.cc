// SPDX-License-Identifier: Apache-2.0
// Contexts: the team that PE numbers count in, and what is outstanding at PEs that are not mapped.
// A session is only a hint. Fence and quiet, and the two barriers of all PEs: mapped memory needs
// one instruction, whatever the context; links that the context used since its last quiet are
// asked. Distributed locks.
#include "pgas/lock.h"
#include "pgas/rma.h"

#include "capi/access.h"
#include "capi/openshmem/handles.h"
#include "capi/openshmem/profiling_alias.h"

namespace memspan::capi {

int peer_through_context(const char* call, shmem_ctx_t ctx, int pe) {
  Context* context = find_context(ctx);
  if (context == nullptr) end_for_bad_handle(call, "ctx", ctx);
  if (pe < 0 || pe >= context->team->size())
    end_for_bad_number(call, "pe", pe, 0, context->team->size() - 1);
  return context->team->peer_of(pe);
}

namespace {

constexpr long kAllOptions = SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE;

int create_context(const char* call, shmem_team_t team, long options, shmem_ctx_t* ctx) try {
  require_started(call);
  require_not_null(call, "ctx", ctx);
  *ctx = SHMEM_CTX_INVALID;
  if (team == SHMEM_TEAM_INVALID || (options & ~kAllOptions) != 0) return 1;
  bool is_private = (options & SHMEM_CTX_PRIVATE) != 0;
  auto context =
      std::make_unique<Context>(Context{&team_of(call, team), number_of(team), is_private});
  auto number = process_state.contexts->add(std::move(context));
  if (number == 0) return 1;
  *ctx = reinterpret_cast<shmem_ctx_t>(number);
  return 0;
}
MEMSPAN_CATCH_IN(call, 1)

// Sequentially consistent: what was stored before is visible to every PE, not only in order.
[[gnu::always_inline]] inline void quiet(const char* call,
                                         ContextNumber context = kDefaultContext) try {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (process_state.has_links) [[unlikely]]
    require(call, capi::quiet_links(routes_of(context)));
}
MEMSPAN_CATCH_AND_END(call)

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

std::uint64_t* lock_word(const char* call, long* lock) {
  static_assert(sizeof(long) == sizeof(std::uint64_t));
  require_host_word(call, "lock", lock);
  return reinterpret_cast<std::uint64_t*>(lock);
}

}  // namespace
}  // namespace memspan::capi

using namespace memspan::capi;

MEMSPAN_PROFILED(int, ctx_create, (long options, shmem_ctx_t* ctx)) {
  return create_context("shmem_ctx_create", SHMEM_TEAM_WORLD, options, ctx);
}

MEMSPAN_PROFILED(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t* ctx)) {
  return create_context("shmem_team_create_ctx", team, options, ctx);
}

MEMSPAN_PROFILED(void, ctx_destroy, (shmem_ctx_t ctx)) try {
  if (ctx == SHMEM_CTX_INVALID) return;
  // A program may not destroy the default context.
  if (find_context(ctx) == nullptr) end_for_bad_handle("shmem_ctx_destroy", "ctx", ctx);
  pshmem_ctx_quiet(ctx);
  process_state.contexts->remove(number_of(ctx));
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_PROFILED(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t* team)) {
  require_not_null("shmem_ctx_get_team", "team", team);
  *team = SHMEM_TEAM_INVALID;
  if (ctx == SHMEM_CTX_INVALID) return 1;
  if (ctx == SHMEM_CTX_DEFAULT) {
    *team = SHMEM_TEAM_WORLD;
    return 0;
  }
  Context* context = find_context(ctx);
  if (context == nullptr) end_for_bad_handle("shmem_ctx_get_team", "ctx", ctx);
  *team = team_handle(context->team_number);
  return 0;
}

// Nothing is gathered or delayed, so there is nothing to prepare for.
MEMSPAN_PROFILED(void, ctx_session_start,
                 (shmem_ctx_t, long, const shmem_ctx_session_config_t*, long)) {}
MEMSPAN_PROFILED(void, ctx_session_stop, ([[maybe_unused]] shmem_ctx_t ctx)) {}

// Links keep order without it.
MEMSPAN_PROFILED(void, fence, (void)) {
  std::atomic_thread_fence(std::memory_order_release);
}
MEMSPAN_PROFILED(void, ctx_fence, (shmem_ctx_t ctx)) {
  if (names_operations("shmem_ctx_fence", ctx)) std::atomic_thread_fence(std::memory_order_release);
}
MEMSPAN_PROFILED(void, quiet, (void)) {
  quiet("shmem_quiet");
}
MEMSPAN_PROFILED(void, ctx_quiet, (shmem_ctx_t ctx)) {
  if (names_operations("shmem_ctx_quiet", ctx)) quiet("shmem_ctx_quiet", number_of(ctx));
}
MEMSPAN_PROFILED(void, pe_quiet, (const int* target_pes, size_t npes)) {
  quiet_peers("shmem_pe_quiet", SHMEM_CTX_DEFAULT, target_pes, npes);
}
MEMSPAN_PROFILED(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int* target_pes, size_t npes)) {
  if (names_operations("shmem_ctx_pe_quiet", ctx))
    quiet_peers("shmem_ctx_pe_quiet", ctx, target_pes, npes);
}

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
  return require(kCall, sync(kCall, team_of(kCall, team))) ? 0 : 1;
}
MEMSPAN_CATCH(1)

// ---- locks

MEMSPAN_PROFILED(void, set_lock, (long* lock)) try {
  constexpr const char* kCall = "shmem_set_lock";
  std::uint64_t* word = lock_word(kCall, lock);
  require(kCall, memspan::pgas::lock(*process_state.world, kCall, word));
}
MEMSPAN_CATCH_AND_END(__func__)

MEMSPAN_PROFILED(int, test_lock, (long* lock)) try {
  constexpr const char* kCall = "shmem_test_lock";
  std::uint64_t* word = lock_word(kCall, lock);
  const auto taken = memspan::pgas::try_lock(*process_state.world, word);
  return require(kCall, taken.status()) && *taken ? 0 : 1;
}
MEMSPAN_CATCH_AND_END(__func__)

// Completes this PE's puts before another PE can take the lock.
MEMSPAN_PROFILED(void, clear_lock, (long* lock)) try {
  constexpr const char* kCall = "shmem_clear_lock";
  std::uint64_t* word = lock_word(kCall, lock);
  pshmem_quiet();
  require(kCall, memspan::pgas::unlock(*process_state.world, kCall, word));
}
MEMSPAN_CATCH_AND_END(__func__)
