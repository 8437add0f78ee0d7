// SPDX-License-Identifier: Apache-2.0
// The part of a group's member that collects (store_group.h). It works on the thread of the store's
// watchers, so also while its member waits for nothing.
#pragma once

#include "store/recipes/store_group.h"

namespace memspan {

// Thread-safe. The outcome of an operation depends only on the members' records and departures, so
// it does not matter which member collects.
class StoreGroup::Collector : public std::enable_shared_from_this<Collector> {
 public:
  Collector(KeyValueStore& store, const GroupKeys& keys) : store_(store), keys_(keys) {}

  // Watches the members and reads their records; decides what is due.
  Status start(const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  // Afterwards no watcher runs.
  void stop();
  std::vector<int> missing(std::uint64_t operation) MEMSPAN_EXCLUDES(mutex_);
  // Ends the operation for all.
  void fail(std::uint64_t operation, const Status& why) MEMSPAN_EXCLUDES(mutex_);

 private:
  using Parts = std::map<int, Contribution>;  // by rank
  Status watch(const std::string& prefix, const Deadline& deadline);
  void take(const StoreChange& change) MEMSPAN_EXCLUDES(mutex_);
  void note(const StoreChange& change) MEMSPAN_REQUIRES(mutex_);
  void take_member(const StoreChange& change) MEMSPAN_REQUIRES(mutex_);
  void note_gone(int rank) MEMSPAN_REQUIRES(mutex_);
  GroupOutcome gather(std::uint64_t operation, Parts& parts) const;
  void decide() MEMSPAN_REQUIRES(mutex_);
  // One thread at a time writes, so outcomes are written in the order of the decisions.
  void write() MEMSPAN_EXCLUDES(mutex_);

  KeyValueStore& store_;
  const GroupKeys keys_;
  std::vector<std::uint64_t> watches_;  // for start() and stop()
  Mutex mutex_;
  bool has_started_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::vector<StoreChange> early_ MEMSPAN_GUARDED_BY(mutex_);  // they came before it had started
  std::map<int, GroupMember> members_ MEMSPAN_GUARDED_BY(mutex_);  // without their parts
  std::map<int, std::string> gone_ MEMSPAN_GUARDED_BY(mutex_);     // why
  struct Operation {
    Parts parts;
    std::size_t failed_with = 0;  // parts when its failure was written
  };
  std::map<std::uint64_t, Operation> operations_ MEMSPAN_GUARDED_BY(mutex_);  // incomplete ones
  std::uint64_t next_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // those before it are complete
  std::deque<GroupOutcome> due_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_writing_ MEMSPAN_GUARDED_BY(mutex_) = false;
};

}  // namespace memspan
