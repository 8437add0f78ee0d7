// SPDX-License-Identifier: Apache-2.0
#include "support/memory_store.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "core/interrupt.h"
#include "core/mutex.h"
#include "core/thread.h"

namespace memspan {

// The store itself; members pass their lease. Thread-safe.
class MemoryStore::Shared {
 public:
  using Lease = std::uint64_t;

  Lease begin(const std::string& member);
  // Ends one lease; the thread that runs its events then ends.
  void end(Lease lease);
  void end_all();

  Status set(Lease lease, std::string_view key, std::string_view value, const Deadline& deadline,
             KeyLife life);
  // Waits for the key until the deadline.
  Result<std::string> get(Lease lease, std::string_view key, const Deadline& deadline);
  Result<std::string> get_now(Lease lease, std::string_view key, const Deadline& deadline);
  Result<std::string> compare_and_swap(Lease lease, std::string_view key, std::string_view expected,
                                       std::string_view desired, const Deadline& deadline,
                                       KeyLife life);
  Result<bool> remove(Lease lease, std::string_view key, const Deadline& deadline);
  Result<StoreListing> list(Lease lease, std::string_view prefix, const Deadline& deadline);
  Result<std::uint64_t> watch(Lease lease, std::string_view prefix, StoreWatcher watcher,
                              const Deadline& deadline);
  Status unwatch(Lease lease, std::uint64_t watch, const Deadline& deadline, bool is_in_watcher);
  // Calls the lease's watchers until it ends.
  void run_events(Lease lease);

 private:
  struct Entry {
    std::string value;
    Lease lease = 0;  // 0: permanent
  };
  struct Watch {
    std::string prefix;
    std::shared_ptr<StoreWatcher> watcher;  // shared with run_events() while it calls it
  };
  struct Holder {
    std::string member;
    std::map<std::uint64_t, Watch> watches = {};
    std::deque<std::pair<std::uint64_t, StoreChange>> events = {};  // each for one watch
    std::uint64_t last_watch = 0;
    std::uint64_t called_watch = 0;  // its watcher runs; 0: none does
  };

  // Ok, or why the call cannot be served.
  Status check(Lease lease, const Deadline& deadline) const MEMSPAN_REQUIRES(mutex_);
  Status check(Lease lease, std::string_view key, const Deadline& deadline) const
      MEMSPAN_REQUIRES(mutex_);
  void put(std::string_view key, Entry entry) MEMSPAN_REQUIRES(mutex_);
  void erase(const std::string& key) MEMSPAN_REQUIRES(mutex_);
  void tell(const StoreChange& change) MEMSPAN_REQUIRES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;  // a key, an event, a watcher that has returned, a lease's end
  std::map<std::string, Entry, std::less<>> entries_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<Lease, Holder> holders_ MEMSPAN_GUARDED_BY(mutex_);  // whose lease has not ended
  Lease last_lease_ MEMSPAN_GUARDED_BY(mutex_) = 0;
};

MemoryStore::Shared::Lease MemoryStore::Shared::begin(const std::string& member) {
  MutexLock lock(mutex_);
  holders_[++last_lease_].member = member;
  return last_lease_;
}

void MemoryStore::Shared::end(Lease lease) {
  MutexLock lock(mutex_);
  if (holders_.erase(lease) == 0) return;
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_)
    if (entry.lease == lease) keys.push_back(key);
  for (const std::string& key : keys) erase(key);
  changed_.notify_all();
}

void MemoryStore::Shared::end_all() {
  MutexLock lock(mutex_);
  holders_.clear();
  changed_.notify_all();
}

Status MemoryStore::Shared::check(Lease lease, const Deadline& deadline) const {
  if (!holders_.contains(lease)) return {Code::kStoreLost, "the lease or the store has ended"};
  if (deadline.has_passed()) return {Code::kTimeout, "the deadline passed before the call"};
  return Status::ok();
}

Status MemoryStore::Shared::check(Lease lease, std::string_view key,
                                  const Deadline& deadline) const {
  if (Status status = check_store_key(key); !status.is_ok()) return status;
  return check(lease, deadline);
}

void MemoryStore::Shared::put(std::string_view key, Entry entry) {
  const StoreChange change{
      .event = StoreEvent::kSet, .key = std::string(key), .value = entry.value};
  entries_.insert_or_assign(change.key, std::move(entry));
  tell(change);
}

void MemoryStore::Shared::erase(const std::string& key) {
  entries_.erase(key);
  tell({.event = StoreEvent::kRemoved, .key = key, .value = {}});
}

void MemoryStore::Shared::tell(const StoreChange& change) {
  for (auto& [lease, holder] : holders_)
    for (const auto& [id, watch] : holder.watches)
      if (change.key.starts_with(watch.prefix)) holder.events.emplace_back(id, change);
  changed_.notify_all();
}

Status MemoryStore::Shared::set(Lease lease, std::string_view key, std::string_view value,
                                const Deadline& deadline, KeyLife life) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(check(lease, key, deadline));
  MEMSPAN_PASS(check_store_value(value));
  put(key, {.value = std::string(value), .lease = life == KeyLife::kLease ? lease : 0});
  return Status::ok();
}

Result<std::string> MemoryStore::Shared::get(Lease lease, std::string_view key,
                                             const Deadline& deadline) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(check(lease, key, deadline));
  for (bool goes_on = true;;) {
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second.value;
    MEMSPAN_PASS(check(lease, Deadline::never()));
    if (!goes_on) return end_of_wait(fmt::format("missing \"{}\"", key));
    goes_on = wait_interruptibly(changed_, mutex_, deadline);
  }
}

Result<std::string> MemoryStore::Shared::get_now(Lease lease, std::string_view key,
                                                 const Deadline& deadline) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(check(lease, key, deadline));
  const auto found = entries_.find(key);
  if (found == entries_.end()) return Status(Code::kNotFound, "there is no such key");
  return found->second.value;
}

Result<std::string> MemoryStore::Shared::compare_and_swap(Lease lease, std::string_view key,
                                                          std::string_view expected,
                                                          std::string_view desired,
                                                          const Deadline& deadline, KeyLife life) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(check(lease, key, deadline));
  MEMSPAN_PASS(check_store_value(desired));
  const auto found = entries_.find(key);
  const Entry now = found == entries_.end() ? Entry{} : found->second;
  if (now.value != expected) return now.value;
  put(key, {.value = std::string(desired), .lease = life == KeyLife::kLease ? lease : now.lease});
  return std::string(desired);
}

Result<bool> MemoryStore::Shared::remove(Lease lease, std::string_view key,
                                         const Deadline& deadline) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(check(lease, key, deadline));
  const bool is_there = entries_.contains(key);
  if (is_there) erase(std::string(key));
  return is_there;
}

Result<StoreListing> MemoryStore::Shared::list(Lease lease, std::string_view prefix,
                                               const Deadline& deadline) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(check(lease, deadline));
  StoreListing listing;
  std::size_t bytes = 0;
  for (auto entry = entries_.lower_bound(prefix);
       entry != entries_.end() && entry->first.starts_with(prefix); ++entry) {
    bytes += entry->first.size() + entry->second.value.size();
    MEMSPAN_PASS(check_store_listing(bytes));
    listing.emplace_back(entry->first, entry->second.value);
  }
  return listing;
}

Result<std::uint64_t> MemoryStore::Shared::watch(Lease lease, std::string_view prefix,
                                                 StoreWatcher watcher, const Deadline& deadline) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(check(lease, deadline));
  Holder& holder = holders_.at(lease);
  holder.watches[++holder.last_watch] = {
      .prefix = std::string(prefix), .watcher = std::make_shared<StoreWatcher>(std::move(watcher))};
  return holder.last_watch;
}

Status MemoryStore::Shared::unwatch(Lease lease, std::uint64_t watch, const Deadline& deadline,
                                    bool is_in_watcher) {
  MutexLock lock(mutex_);
  MEMSPAN_PASS(check(lease, deadline));
  if (holders_.at(lease).watches.erase(watch) == 0)
    return {Code::kNotFound, "there is no such watch"};
  if (is_in_watcher) return Status::ok();
  const Deadline patience = end_of_watcher(deadline);
  for (bool goes_on = true;;) {
    const auto found = holders_.find(lease);
    if (found == holders_.end() || found->second.called_watch != watch) return Status::ok();
    if (!goes_on) return {Code::kTimeout, "unwatch: the watcher is still running"};
    goes_on = changed_.wait_until(mutex_, patience);
  }
}

void MemoryStore::Shared::run_events(Lease lease) {
  MutexLock lock(mutex_);
  for (auto found = holders_.find(lease); found != holders_.end(); found = holders_.find(lease)) {
    Holder& holder = found->second;
    if (holder.events.empty()) {
      changed_.wait_until(mutex_, Deadline::never());
      continue;
    }
    const auto [id, change] = std::move(holder.events.front());
    holder.events.pop_front();
    const auto watch = holder.watches.find(id);
    if (watch == holder.watches.end()) continue;
    const std::shared_ptr<StoreWatcher> watcher = watch->second.watcher;
    holder.called_watch = id;
    mutex_.unlock();
    (*watcher)(change);
    mutex_.lock();
    if (const auto still = holders_.find(lease); still != holders_.end())
      still->second.called_watch = 0;
    changed_.notify_all();
  }
}

// Thread-safe.
class MemoryStore::Member final : public KeyValueStore {
 public:
  Member(std::shared_ptr<Shared> shared, std::string name)
      : shared_(std::move(shared)), name_(std::move(name)), lease_(shared_->begin(name_)) {}
  ~Member() override { end(); }

  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life) override {
    return shared_->set(lease_, key, value, deadline, life).annotate("set");
  }
  Result<std::string> get(std::string_view key, Deadline deadline) override {
    return shared_->get(lease_, key, deadline);
  }
  Result<std::string> get_now(std::string_view key, Deadline deadline) override {
    return shared_->get_now(lease_, key, deadline);
  }
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life) override {
    return shared_->compare_and_swap(lease_, key, expected, desired, deadline, life);
  }
  Result<bool> remove(std::string_view key, Deadline deadline) override {
    return shared_->remove(lease_, key, deadline);
  }
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override {
    return shared_->list(lease_, prefix, deadline);
  }
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override {
    MEMSPAN_PASS(need_event_thread());
    return shared_->watch(lease_, prefix, std::move(watcher), deadline);
  }
  Status unwatch(std::uint64_t watch, Deadline deadline) override {
    return shared_->unwatch(lease_, watch, deadline, is_event_thread());
  }
  void end() override {
    shared_->end(lease_);
    std::optional<std::thread> thread;
    {
      MutexLock lock(mutex_);
      thread.swap(event_thread_);
    }
    if (thread) thread->join();
  }
  std::uint64_t lease() const override { return lease_; }
  const std::string& member() const override { return name_; }

 private:
  Status need_event_thread() {
    MutexLock lock(mutex_);
    if (event_thread_) return Status::ok();
    MEMSPAN_TRY_ASSIGN(
        event_thread_,
        start_thread("a store's watchers",
                     [shared = shared_, lease = lease_] { shared->run_events(lease); }),
        "watching");
    return Status::ok();
  }
  bool is_event_thread() {
    MutexLock lock(mutex_);
    return event_thread_ && event_thread_->get_id() == std::this_thread::get_id();
  }

  const std::shared_ptr<Shared> shared_;  // shared with the store and the other members
  const std::string name_;
  const std::uint64_t lease_;
  Mutex mutex_;
  std::optional<std::thread> event_thread_ MEMSPAN_GUARDED_BY(mutex_);
};

MemoryStore::MemoryStore() : shared_(std::make_shared<Shared>()) {}

MemoryStore::~MemoryStore() {
  shared_->end_all();
}

std::unique_ptr<KeyValueStore> MemoryStore::join(std::string member) {
  return std::make_unique<Member>(shared_, std::move(member));
}

}  // namespace memspan
