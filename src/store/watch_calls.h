// SPDX-License-Identifier: Apache-2.0
// The calls of one watch's watcher, one at a time, and their end. So every store keeps the promise
// of KeyValueStore::unwatch().
#pragma once

#include <thread>

#include "core/mutex.h"
#include "store/key_value_store.h"

namespace memspan::inline store {

// Thread-safe.
class WatchCalls {
 public:
  explicit WatchCalls(StoreWatcher watcher) : watcher_(std::move(watcher)) {}

  // Waits for the call of another thread. Does nothing after end().
  void call(const StoreChange& change) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (caller_ && !is_over_) returned_.wait_until(mutex_, Deadline::never());
    if (is_over_) return;
    caller_ = std::this_thread::get_id();
    mutex_.unlock();
    watcher_(change);
    mutex_.lock();
    caller_.reset();
    returned_.notify_all();
  }

  // Like KeyValueStore::unwatch(). May be repeated after kTimeout.
  Status end(const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_) {
    const Deadline patience = end_of_watcher(deadline);
    MutexLock lock(mutex_);
    is_over_ = true;
    returned_.notify_all();
    while (caller_ && *caller_ != std::this_thread::get_id())
      if (!returned_.wait_until(mutex_, patience) && caller_)
        return {Code::kTimeout, "unwatch: the watcher is still running"};
    return Status::ok();
  }

 private:
  const StoreWatcher watcher_;
  Mutex mutex_;
  ConditionVariable returned_;
  std::optional<std::thread::id> caller_ MEMSPAN_GUARDED_BY(mutex_);  // the watcher runs
  bool is_over_ MEMSPAN_GUARDED_BY(mutex_) = false;
};

}  // namespace memspan::inline store
