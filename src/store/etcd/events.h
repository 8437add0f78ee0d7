// SPDX-License-Identifier: Apache-2.0
// Calls a member's watchers, one after the other, on a thread that begins with the first watch.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "store/watch_calls.h"

namespace memspan::etcd {

// Thread-safe.
class Events {
 public:
  Events() = default;
  ~Events() { stop(); }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Call it before the first push().
  Status start() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (has_stopped_) return {Code::kStoreLost, "the lease has ended"};
    if (thread_) return Status::ok();
    MEMSPAN_TRY_ASSIGN(thread_, start_thread("a store's watchers", [this] { run(); }), "watching");
    return Status::ok();
  }
  void push(std::shared_ptr<WatchCalls> watch, StoreChange change) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    events_.emplace_back(std::move(watch), std::move(change));
    changed_.notify_all();
  }
  // After this returns, no watcher runs or begins. Watchers may not call it.
  void stop() MEMSPAN_EXCLUDES(mutex_) {
    std::optional<std::thread> thread;
    {
      MutexLock lock(mutex_);
      has_stopped_ = true;
      changed_.notify_all();
      thread.swap(thread_);
    }
    if (thread) thread->join();
  }
  void forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
    if (thread_) thread_->detach();
    thread_.reset();
  }

 private:
  void run() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!has_stopped_) {
      if (events_.empty()) {
        changed_.wait_until(mutex_, Deadline::never());
        continue;
      }
      const auto [watch, change] = std::move(events_.front());
      events_.pop_front();
      mutex_.unlock();
      watch->call(change);
      mutex_.lock();
    }
  }

  Mutex mutex_;
  ConditionVariable changed_;  // an event, or the end
  // The watches are shared with the store's table of them.
  std::deque<std::pair<std::shared_ptr<WatchCalls>, StoreChange>> events_
      MEMSPAN_GUARDED_BY(mutex_);
  bool has_stopped_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::optional<std::thread> thread_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::etcd
