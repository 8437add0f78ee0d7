// SPDX-License-Identifier: Apache-2.0
// What kernels ask of spaces (<memspan/space_calls.h>).
#include <memspan/space_calls.h>

#include <atomic>

#include "capi/smem/shm.h"

using namespace memspan;
using namespace memspan::capi;

MEMSPAN_EXPORT int32_t memspan_space_facts_of(uint32_t id, memspan_space_facts* facts) try {
  for (const void* handle : shared_spaces().handles()) {
    const auto used = shared_spaces().use(handle);
    if (!used || used->id != id) continue;
    const Space& space = *used->space;
    const std::span<std::byte> context = space.context();
    *facts = {space.rank(),
              space.ranks(),
              space.bytes(),
              context.data(),
              static_cast<uint32_t>(context.size()),
              0};
    return 1;
  }
  return 0;
}
MEMSPAN_CATCH(0)

MEMSPAN_EXPORT void memspan_space_fence(void) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
