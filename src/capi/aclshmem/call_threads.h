// SPDX-License-Identifier: Apache-2.0
// Threads for work that a call of a device's stream waits for. The driver's own thread makes such
// calls but may not use the device. A call that waits for peers may have to serve their requests,
// which may concern device memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/mutex.h"
#include "device/stream.h"

namespace memspan::capi {

// Thread-safe. There are as many threads as there were calls at one time.
class CallThreads {
 public:
  // Does it on one of them, and returns when it is done. A failure: there can be no such thread.
  Status run(const std::function<void()>& work) MEMSPAN_EXCLUDES(mutex_);

 private:
  std::unique_ptr<Stream> take() MEMSPAN_EXCLUDES(mutex_);

  Mutex mutex_;
  std::vector<std::unique_ptr<Stream>> idle_ MEMSPAN_GUARDED_BY(mutex_);
};

// The process's.
CallThreads& call_threads();

}  // namespace memspan::capi
