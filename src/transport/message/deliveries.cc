// SPDX-License-Identifier: Apache-2.0
#include "transport/message/deliveries.h"

namespace memspan {

void Deliveries::add_message(int peer, const MessageTag& tag, Buffer bytes,
                             std::shared_ptr<Backlog> backlog) {
  backlog->count.fetch_add(1);
  add({.peer = peer, .tag = tag, .bytes = std::move(bytes), .backlog = std::move(backlog)});
}

void Deliveries::add(One one) {
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

void Deliveries::drop_messages(int peer) {
  MutexLock lock(mutex_);
  std::erase_if(all_, [&](const One& one) {
    if (one.backlog == nullptr || one.peer != peer) return false;
    bytes_.fetch_sub(one.bytes.size(), std::memory_order_relaxed);
    return true;
  });
  count_.store(all_.size(), std::memory_order_release);
}

void Deliveries::end() {
  std::deque<One> dropped;
  {
    MutexLock lock(mutex_);
    has_ended_ = true;
    dropped.swap(all_);
    while (is_busy_ && !is_running_) ended_.wait_until(mutex_, Deadline::never());
  }
  for (const One& one : dropped) is_handled(one.backlog);
}

// Answers of its connection may wait for it.
void Deliveries::is_handled(const std::shared_ptr<Backlog>& backlog) const {
  // Pairs with PeerConnection::is_delivered().
  if (backlog != nullptr && backlog->count.fetch_sub(1) == 1 &&
      backlog->is_awaited.exchange(false)) {
    const Turn turn(*engine_);
    engine_->call_again(backlog->connection);
  }
}

void Deliveries::run() {
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

}  // namespace memspan
