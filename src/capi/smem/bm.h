// SPDX-License-Identifier: Apache-2.0
// What the Big Memory calls of this process share.
#pragma once

#include <smem/host/smem_bm.h>

#include "capi/smem/rank_binding.h"
#include "fabric/async_copies.h"
#include "fabric/blocks/block_cache.h"
#include "fabric/user_memory.h"

namespace memspan::capi {

// The object behind a handle.
struct BigMemory : RankedObject {
  std::unique_ptr<Pool> pool;
  Mutex starting;
  std::unique_ptr<blocks::BlockCache> blocks MEMSPAN_GUARDED_BY(starting);
  std::atomic<blocks::BlockCache*> blocks_ready{nullptr};  // blocks.get(), once it is made
  UserMemory user_memory;
  void end_waits() const { pool->end_waits(); }
  AsyncCopies copies;  // ends first: they use the pool
};

struct Pools : RankedObjects<BigMemory, HandleKind::kPool, 1024> {
  Pools() : RankedObjects("bm", "BM") {}
};

}  // namespace memspan::capi
