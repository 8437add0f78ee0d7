// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/events.h"

#include "core/thread.h"

namespace memspan::etcd {

Result<std::uint64_t> Events::add(StoreWatcher watcher) {
  MutexLock lock(mutex_);
  if (has_stopped_) return Status(Code::kStoreLost, "the lease has ended");
  if (!thread_) {
    MEMSPAN_TRY_ASSIGN(thread_, start_thread("a store's watchers", [this] { run(); }), "watching");
  }
  watchers_[++last_watch_] = std::make_shared<StoreWatcher>(std::move(watcher));
  return last_watch_;
}

void Events::push(std::uint64_t watch, StoreChange change) {
  MutexLock lock(mutex_);
  events_.emplace_back(watch, std::move(change));
  changed_.notify_all();
}

Status Events::remove(std::uint64_t watch, const Deadline& deadline) {
  MutexLock lock(mutex_);
  if (watchers_.erase(watch) == 0) return {Code::kNotFound, "there is no such watch"};
  if (thread_ && thread_->get_id() == std::this_thread::get_id()) return Status::ok();
  const Deadline patience = end_of_watcher(deadline);
  for (bool goes_on = true; called_ == watch;) {
    if (!goes_on) return {Code::kTimeout, "unwatch: the watcher is still running"};
    goes_on = changed_.wait_until(mutex_, patience);
  }
  return Status::ok();
}

void Events::stop() {
  std::optional<std::thread> thread;
  {
    MutexLock lock(mutex_);
    has_stopped_ = true;
    changed_.notify_all();
    thread.swap(thread_);
  }
  if (thread) thread->join();
}

void Events::forget_in_child() MEMSPAN_ATTRIBUTE_(no_thread_safety_analysis) {
  if (thread_) thread_->detach();
  thread_.reset();
}

void Events::run() {
  MutexLock lock(mutex_);
  while (!has_stopped_) {
    if (events_.empty()) {
      changed_.wait_until(mutex_, Deadline::never());
      continue;
    }
    const auto [watch, change] = std::move(events_.front());
    events_.pop_front();
    const auto found = watchers_.find(watch);
    if (found == watchers_.end()) continue;
    const std::shared_ptr<StoreWatcher> watcher = found->second;
    called_ = watch;
    mutex_.unlock();
    (*watcher)(change);
    mutex_.lock();
    called_ = 0;
    changed_.notify_all();
  }
}

}  // namespace memspan::etcd
