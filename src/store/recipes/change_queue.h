// SPDX-License-Identifier: Apache-2.0
// Watches whose changes the caller takes in its own thread, with bounded waits.
#pragma once

#include <deque>
#include <new>

#include "core/interrupt.h"
#include "store/key_value_store.h"

namespace memspan::inline store {

// One thread at a time. The store must outlive it.
class ChangeQueue : NotCopyable {
 public:
  explicit ChangeQueue(KeyValueStore& store) : store_(store), state_(std::make_shared<State>()) {}
  ~ChangeQueue() {
    try {
      for (std::uint64_t watch : watches_)
        static_cast<void>(store_.unwatch(watch, Deadline::after(std::chrono::seconds(1))));
    } catch (const std::bad_alloc&) {
      // The store ends the watch with the connection; until then its changes are dropped here.
    }
  }

  // After this returns, every change of a key with the prefix enters the queue.
  Status watch(std::string_view prefix, Deadline deadline) {
    auto watch = store_.watch(
        prefix,
        [state = state_](const StoreChange& change) {
          MutexLock lock(state->mutex);
          state->changes.push_back(change);
          state->changed.notify_all();
        },
        deadline);
    if (watch.is_ok()) watches_.push_back(*watch);
    return watch.status();
  }

  // Returns the next change, in order; nullopt if none comes by the deadline, or the thread is
  // interrupted.
  std::optional<StoreChange> pop(const Deadline& deadline) {
    MutexLock lock(state_->mutex);
    while (state_->changes.empty())
      if (!wait_interruptibly(state_->changed, state_->mutex, deadline)) return std::nullopt;
    StoreChange next = std::move(state_->changes.front());
    state_->changes.pop_front();
    return next;
  }

  // Like pop(), but end_of_wait() if no change comes by the deadline, and kStoreLost soon after the
  // lease has ended.
  Result<StoreChange> next(Deadline deadline) {
    for (;;) {
      if (auto change = pop(deadline.within(kLook))) return std::move(*change);
      // No event reports the end of a lease.
      const Status alive = store_.get_now("?", Deadline::after(kLook)).status();
      if (alive.code() == Code::kStoreLost || alive.code() == Code::kForked) return alive;
      if (is_interrupted() || deadline.has_passed()) return end_of_wait("nothing changed");
    }
  }

 private:
  // How often a queue without changes checks that the lease still holds.
  static constexpr Duration kLook = std::chrono::milliseconds(500);

  struct State {
    Mutex mutex;
    ConditionVariable changed;
    std::deque<StoreChange> changes MEMSPAN_GUARDED_BY(mutex);
  };

  KeyValueStore& store_;
  const std::shared_ptr<State> state_;  // shared with the watcher
  std::vector<std::uint64_t> watches_;
};

}  // namespace memspan::inline store
