// SPDX-License-Identifier: Apache-2.0
// The store's verbs on etcd. The keys below the prefix of the address:
//
//   PREFIX/key/KEY                 the keys that members set
//   PREFIX/session/ID              a member, under its lease; the revision of its creation is the
//                                  member's number
//   PREFIX/session/ID/write/N      the marks of its writes
//
// Every write is one transaction, which changes the write's mark. It succeeds only if the member's
// key exists and the mark is as this member left it. The first attempt to arrive records its
// outcome in the mark; later attempts change nothing and read that. So a member without its lease
// writes nothing, a repeated write takes effect once, and a late attempt does not disturb the
// mark's next write. A mark serves one write at a time.
#pragma once

#include <unistd.h>
#include <deque>
#include <thread>

#include "core/thread.h"
#include "store/etcd/etcd_streams.h"
#include "store/watch_calls.h"

namespace memspan::etcd {

// Calls a member's watchers, one after the other, on a thread that begins with the first watch.
// Thread-safe.
class Events : NotCopyable {
 public:
  Events() = default;
  ~Events() { stop(); }

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

// Thread-safe. In a child made by fork() every call returns kForked.
class EtcdStore final : public KeyValueStore {
 public:
  static Result<std::unique_ptr<KeyValueStore>> connect(const StoreAccess& access,
                                                        const EtcdHost& host, Deadline deadline);
  ~EtcdStore() override;

  Status set(std::string_view key, std::string_view value, Deadline deadline,
             KeyLife life) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Result<std::string> get_now(std::string_view key, Deadline deadline) override;
  Result<std::string> compare_and_swap(std::string_view key, std::string_view expected,
                                       std::string_view desired, Deadline deadline,
                                       KeyLife life) override;
  Result<bool> remove(std::string_view key, Deadline deadline) override;
  Result<StoreListing> list(std::string_view prefix, Deadline deadline) override;
  Result<std::uint64_t> watch(std::string_view prefix, StoreWatcher watcher,
                              Deadline deadline) override;
  Status unwatch(std::uint64_t watch, Deadline deadline) override;
  void end() override;
  std::uint64_t lease() const override { return number_; }
  const std::string& member() const override { return member_; }

 private:
  struct Mark {
    std::uint64_t number = 0;
    Revision written = 0;  // 0: never
  };

  EtcdStore(const StoreAccess& access, EtcdUser user, std::unique_ptr<HttpSettings> settings,
            const EtcdHost& host);
  Status begin_lease(const Deadline& deadline);
  // Ok, or why the call cannot be served.
  Status check(const Deadline& deadline);
  Status check(std::string_view key, const Deadline& deadline);
  // One key, or all in [key, end).
  Result<RangeAnswer> read(std::string_view key, const Deadline& deadline,
                           std::string_view end = {}, Reading reading = Reading::kWhole);
  // True: it is written. False: the key has another revision than `expected`, or the lease that it
  // should keep has ended.
  Result<bool> write(Transaction::Write what, std::optional<Revision> expected,
                     const Deadline& deadline);
  Result<bool> judge(const TransactionAnswer& answer, const Mark& mark,
                     const std::string& mark_key);
  Mark take_mark() MEMSPAN_EXCLUDES(mutex_);
  Status lose();
  std::string without_prefix(const std::string& key) const { return key.substr(keys_.size()); }

  const std::string member_;
  const pid_t process_;
  const EtcdHost host_;
  const std::string keys_;  // "PREFIX/key/"
  const LeaseId lease_;
  const std::string session_;  // "PREFIX/session/ID"
  std::uint64_t number_ = 0;
  const std::unique_ptr<HttpSettings> settings_;
  Cluster cluster_;
  Events events_;
  std::unique_ptr<Streams> streams_;  // its sinks call the events
  Mutex mutex_;
  bool has_ended_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t last_mark_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::vector<Mark> marks_ MEMSPAN_GUARDED_BY(mutex_);
  // By their ids in streams_. Shared with the sinks and the events.
  std::map<std::uint64_t, std::shared_ptr<WatchCalls>> watches_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan::etcd
