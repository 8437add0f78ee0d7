// SPDX-License-Identifier: Apache-2.0
// The functions of memspan/pool.h.
#include <fmt/format.h>
#include <memspan/pool.h>

#include "capi/smem/bm.h"

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_pool_wait_members(smem_bm_t pool, uint32_t count,
                                                 uint32_t timeout_ms) {
  constexpr const char* kCall = "memspan_pool_wait_members";
  const Deadline deadline = deadline_of(timeout_ms);
  return with_pool(kCall, pool, [&](BigMemory& memory) {
    if (count == 0 || count > memory.pool->ranks())
      return smem_failure(
          kCall, SMEM_INVALID_PARAM,
          fmt::format("count is {}, allowed are 1 to {}", count, memory.pool->ranks()));
    return smem_result_of_turn(kCall, memory.pool->await_members(count, deadline));
  });
}

MEMSPAN_EXPORT int32_t memspan_pool_wait_rank(smem_bm_t pool, uint32_t rank, uint32_t timeout_ms) {
  constexpr const char* kCall = "memspan_pool_wait_rank";
  const Deadline deadline = deadline_of(timeout_ms);
  return with_pool(kCall, pool, [&](BigMemory& memory) {
    if (rank >= memory.pool->ranks())
      return smem_failure(
          kCall, SMEM_INVALID_PARAM,
          fmt::format("rank is {}, allowed are 0 to {}", rank, memory.pool->ranks() - 1));
    return smem_result_of_turn(kCall, memory.pool->await_member(rank, deadline));
  });
}
