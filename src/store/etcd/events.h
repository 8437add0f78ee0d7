// SPDX-License-Identifier: Apache-2.0
// Calls a member's watchers, one after the other, on a thread that begins with the first watch.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "store/key_value_store.h"

namespace memspan::etcd {

// Thread-safe.
class Events {
 public:
  Events() = default;
  ~Events() { stop(); }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Returns the id of a new watch, for push().
  Result<std::uint64_t> add(StoreWatcher watcher) MEMSPAN_EXCLUDES(mutex_);
  void push(std::uint64_t watch, StoreChange change) MEMSPAN_EXCLUDES(mutex_);
  // After this returns, no call of the watcher runs or begins, unless the watcher itself calls
  // this. kTimeout if a call did not end; kNotFound for another id.
  Status remove(std::uint64_t watch, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  // After this returns, no watcher runs or begins. Watchers may not call it.
  void stop() MEMSPAN_EXCLUDES(mutex_);
  void forget_in_child();

 private:
  void run() MEMSPAN_EXCLUDES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;  // an event, a watcher that has returned, the end
  // Shared with run() while it calls one.
  std::map<std::uint64_t, std::shared_ptr<StoreWatcher>> watchers_ MEMSPAN_GUARDED_BY(mutex_);
  std::deque<std::pair<std::uint64_t, StoreChange>> events_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t last_watch_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t called_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // its watcher runs; 0: none does
  bool has_stopped_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::optional<std::thread> thread_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::etcd
