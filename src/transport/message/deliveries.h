// SPDX-License-Identifier: Apache-2.0
// Messages of peers on their way to the program's handler, and other calls of handlers. The engine
// adds them; a thread without the turn calls the handlers, one at a time and in order.
#pragma once

#include <deque>

#include "transport/message/engine.h"
#include "transport/message/message_transport.h"

namespace memspan::inline transport {

// The messages of one connection that no handler has handled. Thread-safe.
struct Backlog {
  Engine::Id connection = 0;  // set before the first message
  std::atomic<std::size_t> count{0};
  std::atomic<bool> is_awaited{false};  // its connection waits for the last of them
};

// Thread-safe.
class Deliveries {
 public:
  // The engine calls a connection again that waits for its backlog.
  Deliveries(const MessageHandlers& handlers, const std::unique_ptr<Engine>& engine)
      : handlers_(handlers), engine_(engine) {}

  // Both require the turn, and the engine calls run() soon.
  void add_message(int peer, const MessageTag& tag, Buffer bytes, std::shared_ptr<Backlog> backlog)
      MEMSPAN_EXCLUDES(mutex_) {
    backlog->count.fetch_add(1);
    add({.peer = peer, .tag = tag, .bytes = std::move(bytes), .backlog = std::move(backlog)});
  }

  void add_call(std::function<void()> call) MEMSPAN_EXCLUDES(mutex_) {
    add({.call = std::move(call)});
  }
  // Forgets messages of a peer that no handler has got.
  void drop_messages(int peer) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::erase_if(all_, [&](const One& one) {
      if (one.backlog == nullptr || one.peer != peer) return false;
      bytes_.fetch_sub(one.bytes.size(), std::memory_order_relaxed);
      return true;
    });
    count_.store(all_.size(), std::memory_order_release);
  }

  // Forgets everything, and takes no more. Waits for a handler of another thread.
  void end() MEMSPAN_EXCLUDES(mutex_) {
    std::deque<One> dropped;
    {
      MutexLock lock(mutex_);
      has_ended_ = true;
      dropped.swap(all_);
      while (is_busy_ && !is_running_) ended_.wait_until(mutex_, Deadline::never());
    }
    for (const One& one : dropped) is_handled(one.backlog);
  }

  // Calls the handlers for all that was added, unless another thread does. The caller holds no
  // lock.
  void run() MEMSPAN_EXCLUDES(mutex_) {
    if (count_.load(std::memory_order_acquire) == 0) return;
    MutexLock lock(mutex_);
    if (is_busy_) return;
    is_busy_ = true;
    while (!all_.empty()) {
      One one = std::move(all_.front());
      all_.pop_front();
      count_.store(all_.size(), std::memory_order_release);
      bytes_.fetch_sub(one.bytes.size(), std::memory_order_relaxed);
      mutex_.unlock();
      is_running_ = true;
      if (one.backlog == nullptr)
        one.call();
      else if (handlers_.on_message)
        handlers_.on_message(one.peer, one.tag, std::move(one.bytes));
      const std::shared_ptr<Backlog> backlog = std::move(one.backlog);
      one = {};  // without the lock, and while its end may end the transport
      is_running_ = false;
      is_handled(backlog);
      mutex_.lock();
    }
    is_busy_ = false;
    if (has_ended_) ended_.notify_all();
  }

  // Bytes of messages that no handler has got.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Whether this thread is in a handler. Then it must not wait for a peer.
  static bool is_running() { return is_running_; }

 private:
  // A message, or a call without a backlog.
  struct One {
    int peer = -1;
    MessageTag tag = {};
    Buffer bytes = {};
    std::shared_ptr<Backlog> backlog = {};
    std::function<void()> call = {};
  };
  void add(One one) MEMSPAN_EXCLUDES(mutex_) {
    engine_->assert_turn();
    MutexLock lock(mutex_);
    if (has_ended_) {
      // Its connection, which added it, has not asked yet.
      if (one.backlog != nullptr) one.backlog->count.fetch_sub(1);
      return;
    }
    bytes_.fetch_add(one.bytes.size(), std::memory_order_relaxed);
    all_.push_back(std::move(one));
    count_.store(all_.size(), std::memory_order_release);
    engine_->request_after_turn();
  }

  // Answers of its connection may wait for it.
  void is_handled(const std::shared_ptr<Backlog>& backlog) const {
    // Pairs with PeerConnection::is_delivered().
    if (backlog != nullptr && backlog->count.fetch_sub(1) == 1 &&
        backlog->is_awaited.exchange(false)) {
      const Turn turn(*engine_);
      engine_->call_again(backlog->connection);
    }
  }

  static inline thread_local bool is_running_ = false;
  const MessageHandlers& handlers_;
  const std::unique_ptr<Engine>& engine_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> bytes_{0};
  Mutex mutex_;
  ConditionVariable ended_;
  std::deque<One> all_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_busy_ MEMSPAN_GUARDED_BY(mutex_) = false;  // a thread runs handlers
  bool has_ended_ MEMSPAN_GUARDED_BY(mutex_) = false;
};

}  // namespace memspan::inline transport
