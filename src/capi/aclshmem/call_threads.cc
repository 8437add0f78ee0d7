// SPDX-License-Identifier: Apache-2.0
#include "capi/aclshmem/call_threads.h"

#include <chrono>

#include "capi/smem/fork_aware_singleton.h"

namespace memspan::capi {

std::unique_ptr<Stream> CallThreads::take() {
  MutexLock lock(mutex_);
  if (idle_.empty()) return std::make_unique<Stream>();
  std::unique_ptr<Stream> stream = std::move(idle_.back());
  idle_.pop_back();
  return stream;
}

Status CallThreads::run(const std::function<void()>& work) {
  // Limited, because a caller that waits without a limit may do the stream's work itself.
  constexpr auto kLook = std::chrono::hours(1);
  std::unique_ptr<Stream> stream = take();
  MEMSPAN_TRY(stream->submit([&work] {
    work();
    return Status::ok();
  }),
              "a thread for a call of a device's stream");
  while (stream->synchronize(Deadline::after(kLook)).code() == Code::kTimeout) {
  }
  MutexLock lock(mutex_);
  idle_.push_back(std::move(stream));
  return Status::ok();
}

CallThreads& call_threads() {
  return fork_aware_singleton<CallThreads>();
}

}  // namespace memspan::capi
