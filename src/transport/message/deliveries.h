// SPDX-License-Identifier: Apache-2.0
// Messages of peers on their way to the program's handler, and other calls of handlers. The engine
// adds them; a thread without the turn calls the handlers, one at a time and in order.
#pragma once

#include <deque>

#include "transport/message/engine.h"
#include "transport/message/message_transport.h"

namespace memspan {

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
      MEMSPAN_EXCLUDES(mutex_);
  void add_call(std::function<void()> call) MEMSPAN_EXCLUDES(mutex_) {
    add({.call = std::move(call)});
  }
  // Forgets messages of a peer that no handler has got.
  void drop_messages(int peer) MEMSPAN_EXCLUDES(mutex_);
  // Forgets everything, and takes no more. Waits for a handler of another thread.
  void end() MEMSPAN_EXCLUDES(mutex_);

  // Calls the handlers for all that was added, unless another thread does. The caller holds no
  // lock.
  void run() MEMSPAN_EXCLUDES(mutex_);
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
  void add(One one) MEMSPAN_EXCLUDES(mutex_);
  void is_handled(const std::shared_ptr<Backlog>& backlog) const;

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

}  // namespace memspan
