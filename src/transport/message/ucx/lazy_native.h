// SPDX-License-Identifier: Apache-2.0
// One-sided access of a carrier. The first use sets up UCX for it: most jobs have no network for
// it, or no large transfer.
#pragma once

#include <atomic>
#include <memory>

#include "core/fd.h"
#include "core/mutex.h"
#include "transport/message/native_access.h"
#include "transport/message/ucx/native_worker.h"

namespace memspan::ucx {

class LazyNative final : public NativeAccess {
 public:
  // `streams`: the descriptor of the carrier's other worker.
  explicit LazyNative(int streams);

  // For both: an epoll, which the engine watches.
  int descriptor() const { return gate_.get(); }
  NativeAccess* access() { return this; }
  Result<std::string> key(std::byte* base, std::size_t bytes) override;
  void retract(std::byte* base, std::size_t bytes) override;
  Result<std::unique_ptr<NativeMemory>> open(std::string_view key) override;
  std::uint64_t registrations() const override;
  // For the thread that serves that descriptor.
  void progress();

 private:
  Result<NativeWorker*> worker() MEMSPAN_EXCLUDES(mutex_);

  Fd gate_;
  Mutex mutex_;
  Status failure_ MEMSPAN_GUARDED_BY(mutex_);
  std::shared_ptr<NativeWorker> made_ MEMSPAN_GUARDED_BY(mutex_);  // shared with its pieces
  std::atomic<NativeWorker*> worker_{nullptr};                     // made_, read without mutex_
};

}  // namespace memspan::ucx
