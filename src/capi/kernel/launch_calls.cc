// SPDX-License-Identifier: Apache-2.0
// Kernel launches in the order of a stream.
#include <fmt/format.h>
#include <memspan/stream.h>

#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/result.h"
#include "capi/smem/stream_table.h"
#include "device/host/grid.h"

namespace memspan::capi {

namespace {

std::int32_t launch(const char* call, memspan_stream_t stream, unsigned blocks,
                    void (*kernel)(void*), void* arguments, void (*release)(void*)) {
  // Given back when the launch is over or was not begun.
  std::shared_ptr<void> given(arguments, [release](void* of_kernel) {
    if (release != nullptr) release(of_kernel);
  });
  if (kernel == nullptr)
    return smem_failure(call, SMEM_INVALID_PARAM, "invalid param, kernel is NULL");
  if (blocks == 0 || blocks > BlockThreads::kMostBlocks)
    return smem_failure(call, SMEM_INVALID_PARAM,
                        fmt::format("invalid param, {} blocks; allowed are 1 to {}", blocks,
                                    BlockThreads::kMostBlocks));
  auto used = streams().use(stream);
  if (!used) return bad_handle(call, stream, "stream");
  const Status submitted = used->submit([given = std::move(given), kernel, blocks] {
    return fork_aware_singleton<BlockThreads>().run(blocks, [&](unsigned) { kernel(given.get()); });
  });
  if (submitted.is_ok()) return SMEM_OK;
  return smem_failure(call, SMEM_NO_RESOURCES, submitted.message());
}

}  // namespace
}  // namespace memspan::capi

MEMSPAN_EXPORT int32_t memspan_stream_launch(memspan_stream_t stream, unsigned blocks,
                                             void (*kernel)(void* arguments), void* arguments,
                                             void (*release)(void* arguments)) try {
  return memspan::capi::launch("memspan_stream_launch", stream, blocks, kernel, arguments, release);
}
MEMSPAN_CATCH(SMEM_MALLOC_FAILED)
