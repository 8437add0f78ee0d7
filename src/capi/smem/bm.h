// SPDX-License-Identifier: Apache-2.0
// What the Big Memory calls of this process share.
#pragma once

#include <smem/host/smem_bm.h>

#include "capi/handle_table.h"
#include "capi/smem/result.h"
#include "fabric/async_copies.h"
#include "fabric/blocks/block_cache.h"
#include "fabric/user_memory.h"

namespace memspan::capi {

// The object behind a handle.
struct BigMemory {
  std::uint32_t id = 0;
  Duration limit = {};  // of operations that wait for others
  std::unique_ptr<Pool> pool;
  Mutex starting;
  std::unique_ptr<blocks::BlockCache> blocks MEMSPAN_GUARDED_BY(starting);
  std::atomic<blocks::BlockCache*> blocks_ready{nullptr};  // blocks.get(), once it is made
  UserMemory user_memory;
  Deadline deadline() const { return Deadline::after(limit); }
  AsyncCopies copies;  // ends first: they use the pool
};

using BigMemories = HandleTable<BigMemory, HandleKind::kPool, 1024>;
BigMemories& big_memories();

// Why a handle names nothing, kept as the call's failure.
std::int32_t no_such_pool(const char* call, const void* handle);
// Calls `function` with what the handle names.
template <typename Function>
std::int32_t with_pool(const char* call, const void* handle, Function function,
                       std::int32_t if_unavailable = SMEM_NOT_STARTED) try {
  const auto memory = big_memories().use(handle);
  return memory ? smem_result(call, function(*memory), if_unavailable) : no_such_pool(call, handle);
}
MEMSPAN_CATCH_IN(call, SMEM_MALLOC_FAILED)

}  // namespace memspan::capi
