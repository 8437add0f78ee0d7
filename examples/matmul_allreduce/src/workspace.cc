// SPDX-License-Identifier: Apache-2.0
#include "workspace.h"

#include <shmem.h>

namespace matmul {

Workspace::Workspace(const MemoryNeed& need)
    : result_bytes_(need.result),
      results_(static_cast<std::byte*>(shmem_align(64, 2 * need.result))),
      partials_(static_cast<std::byte*>(shmem_align(64, need.workspace))),
      signals_(static_cast<std::uint64_t*>(shmem_calloc(need.signals / 8, 8))) {}

Workspace::~Workspace() {
  shmem_free(signals_);
  shmem_free(partials_);
  shmem_free(results_);
}

}  // namespace matmul
