// SPDX-License-Identifier: Apache-2.0
// Kernel launches in the order of a stream.
#include <fmt/format.h>
#include <memspan/stream.h>

#include <memory>
#include <utility>

#include "capi/kernel/block_threads.h"
#include "capi/smem/fork_aware_singleton.h"
#include "capi/smem/result.h"
#include "capi/smem/stream_table.h"

namespace memspan::capi {

BlockThreads& block_threads() {
  return fork_aware_singleton<BlockThreads>();
}

namespace {

// A kernel and its arguments, given back when the launch is over or was not begun.
class Launch {
 public:
  Launch(void (*kernel)(void*), void* arguments, void (*release)(void*))
      : kernel_(kernel), arguments_(arguments), release_(release) {}
  Launch(Launch&& other) noexcept
      : kernel_(other.kernel_),
        arguments_(other.arguments_),
        release_(std::exchange(other.release_, nullptr)) {}
  ~Launch() {
    if (release_ != nullptr) release_(arguments_);
  }
  Launch& operator=(Launch&&) = delete;

  Status run(unsigned blocks) const {
    return block_threads().run(blocks, [this](unsigned) { kernel_(arguments_); });
  }

 private:
  void (*kernel_)(void*);
  void* arguments_;
  void (*release_)(void*);
};

std::int32_t launch(const char* call, memspan_stream_t stream, unsigned blocks,
                    void (*kernel)(void*), void* arguments, void (*release)(void*)) {
  auto given = std::make_shared<const Launch>(Launch(kernel, arguments, release));
  if (kernel == nullptr)
    return smem_failure(call, SMEM_INVALID_PARAM, "invalid param, kernel is NULL");
  if (blocks == 0 || blocks > BlockThreads::kMostBlocks)
    return smem_failure(call, SMEM_INVALID_PARAM,
                        fmt::format("invalid param, {} blocks; allowed are 1 to {}", blocks,
                                    BlockThreads::kMostBlocks));
  auto used = streams().use(stream);
  if (!used) return bad_handle(call, stream, "stream");
  const Status submitted =
      used->submit([given = std::move(given), blocks] { return given->run(blocks); });
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
