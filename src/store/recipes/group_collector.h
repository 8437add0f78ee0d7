// SPDX-License-Identifier: Apache-2.0
// The part of a group's member that collects (store_group.h). It works on the thread of the store's
// watchers, so also while its member waits for nothing.
#pragma once

#include <algorithm>
#include <set>

#include "store/recipes/store_group.h"

namespace memspan::inline store {

// Thread-safe. The outcome of an operation depends only on the members' records and departures, so
// it does not matter which member collects.
class StoreGroup::Collector : public std::enable_shared_from_this<Collector> {
 public:
  Collector(KeyValueStore& store, const GroupKeys& keys) : store_(store), keys_(keys) {}

  // Watches the members and reads their records; decides what is due.
  Status start(const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_) {
    MEMSPAN_PASS(watch(keys_.member_prefix(), deadline));
    MEMSPAN_PASS(watch(keys_.alive_prefix(), deadline));
    MEMSPAN_PASS_ASSIGN(const auto last,
                        find_record<GroupOutcome>(store_, keys_.outcome_key(), deadline));
    // A member's record is written when its key under its lease exists, and read before that key.
    MEMSPAN_TRY_ASSIGN(auto members,
                       list_records<GroupMember>(store_, keys_.member_prefix(), deadline),
                       "reading the members");
    MEMSPAN_TRY_ASSIGN(const StoreListing alive, store_.list(keys_.alive_prefix(), deadline),
                       "reading the members");
    std::set<int> ranks;
    for (const auto& [key, value] : alive) ranks.insert(keys_.rank_of_alive(key));
    // Those that may have left since their records were read.
    for (int rank = 0; rank < keys_.size; ++rank) {
      if (ranks.contains(rank) || (!members.contains(rank) && !keys_.is_created())) continue;
      auto now = find_record<GroupMember>(store_, keys_.member_key(rank), deadline);
      if (now.is_ok() && *now) members[rank] = std::move(**now);
    }
    {
      MutexLock lock(mutex_);
      if (last) next_ = std::max(next_, last->operation + (last->is_complete ? 1 : 0));
      for (auto& [rank, member] : members) take_member(rank, std::move(member));
      for (int rank = 0; rank < keys_.size; ++rank)
        if (!ranks.contains(rank)) note_gone(rank);
      for (const StoreChange& change : std::exchange(early_, {})) note(change);
      has_started_ = true;
      decide();
    }
    write();
    return Status::ok();
  }

  // Afterwards no watcher runs.
  void stop() {
    for (const std::uint64_t watch : std::exchange(watches_, {}))
      static_cast<void>(store_.unwatch(watch, Deadline::after(std::chrono::seconds(1))));
  }

  std::vector<int> missing(std::uint64_t operation) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<int> missing;
    if (operation < next_) return missing;
    const Parts& parts = operations_[operation].parts;
    for (int rank = 0; rank < keys_.size; ++rank)
      if (!parts.contains(rank)) missing.push_back(rank);
    return missing;
  }

  // Ends the operation for all.
  void fail(std::uint64_t operation, const Status& why) MEMSPAN_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      due_.push_back({.operation = operation, .status = why});
    }
    write();
  }

 private:
  using Parts = std::map<int, Contribution>;  // by rank
  static constexpr Duration kPatience = std::chrono::seconds(15);
  Status watch(const std::string& prefix, const Deadline& deadline) {
    const auto watch = store_.watch(
        prefix, [self = shared_from_this()](const StoreChange& change) { self->take(change); },
        deadline);
    if (watch.is_ok()) watches_.push_back(*watch);
    return watch.status().annotate("watching the members");
  }

  void take(const StoreChange& change) MEMSPAN_EXCLUDES(mutex_) {
    const int gone = rank_gone_by(change);
    {
      MutexLock lock(mutex_);
      if (!has_started_) {
        early_.push_back(change);
        return;
      }
    }
    const auto last = gone < 0 ? std::nullopt : last_record(gone);
    {
      MutexLock lock(mutex_);
      if (last) take_member(gone, *last);
      note(change);
      decide();
    }
    write();
  }

  // The record of a member that is gone, unless it has come: the watch of the records may lag
  // behind that of the members' keys.
  std::optional<GroupMember> last_record(int rank) MEMSPAN_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      const auto known = members_.find(rank);
      if (known != members_.end() && known->second.has_left) return std::nullopt;
    }
    auto read =
        find_record<GroupMember>(store_, keys_.member_key(rank), Deadline::after(kPatience));
    return read.is_ok() ? std::move(*read) : std::nullopt;
  }

  // The member whose own key is removed; -1 if it is another change.
  int rank_gone_by(const StoreChange& change) const {
    const bool is_gone =
        change.event == StoreEvent::kRemoved && !change.key.starts_with(keys_.member_prefix());
    return is_gone ? keys_.rank_of_alive(change.key) : -1;
  }

  void note(const StoreChange& change) MEMSPAN_REQUIRES(mutex_) {
    note_gone(rank_gone_by(change));
    if (change.key.starts_with(keys_.member_prefix()) && change.event == StoreEvent::kSet) {
      const auto rank = rank_in_key(change.key, keys_.member_prefix());
      auto member = decode_record<GroupMember>(change.value);
      if (rank.is_ok() && member.is_ok()) take_member(*rank, std::move(*member));
    }
  }

  void take_member(int rank, GroupMember member) MEMSPAN_REQUIRES(mutex_) {
    for (auto& [operation, part] : std::exchange(member.parts, {}))
      if (operation >= next_) operations_[operation].parts.emplace(rank, std::move(part));
    members_[rank] = std::move(member);
  }

  // A member that never came is not gone.
  void note_gone(int rank) MEMSPAN_REQUIRES(mutex_) {
    if (rank < 0) return;
    if (const auto found = members_.find(rank); found != members_.end())
      gone_.emplace(rank, member_is_gone(rank, found->second.name, found->second.has_left));
    else if (keys_.is_created())
      gone_.emplace(
          rank, member_is_gone(rank, keys_.created.members[static_cast<std::size_t>(rank)].name));
  }

  GroupOutcome gather(std::uint64_t operation, Parts& parts) const {
    GroupOutcome outcome{.operation = operation, .is_complete = true};
    for (auto& [rank, part] : parts) {
      if (outcome.status.is_ok()) outcome.status = part.check(rank, keys_.size);
      outcome.parts.push_back(std::move(part.bytes));
    }
    auto& all = outcome.parts;
    if (!outcome.status.is_ok())
      all.clear();
    else if (std::equal(all.begin() + 1, all.end(), all.begin()))
      all.resize(1);
    return outcome;
  }

  void decide() MEMSPAN_REQUIRES(mutex_) {
    for (auto found = operations_.begin(); found != operations_.end();) {
      auto& [operation, state] = *found;
      if (state.parts.size() == static_cast<std::size_t>(keys_.size)) {
        due_.push_back(gather(operation, state.parts));
        next_ = operation + 1;
        found = operations_.erase(operations_.begin(), std::next(found));
        continue;
      }
      ++found;
      // Written again for each member that comes later.
      if (state.failed_with == state.parts.size()) continue;
      for (const auto& [rank, why] : gone_) {
        if (state.parts.contains(rank)) continue;
        state.failed_with = state.parts.size();
        due_.push_back({.operation = operation, .status = why});
        break;
      }
    }
  }

  // One thread at a time writes, so outcomes are written in the order of the decisions.
  void write() MEMSPAN_EXCLUDES(mutex_) {
    for (bool goes_on = true; goes_on;) {
      std::string outcome;
      {
        MutexLock lock(mutex_);
        if (is_writing_ || due_.empty()) return;
        is_writing_ = true;
        outcome = encode_record(due_.front());
        due_.pop_front();
      }
      // A collector that has lost the store is replaced.
      const Status written = store_.set(keys_.outcome_key(), outcome, Deadline::after(kPatience));
      MutexLock lock(mutex_);
      is_writing_ = false;
      goes_on = written.is_ok() && !due_.empty();
    }
  }

  KeyValueStore& store_;
  const GroupKeys keys_;
  std::vector<std::uint64_t> watches_;  // for start() and stop()
  Mutex mutex_;
  bool has_started_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::vector<StoreChange> early_ MEMSPAN_GUARDED_BY(mutex_);  // they came before it had started
  std::map<int, GroupMember> members_ MEMSPAN_GUARDED_BY(mutex_);  // without their parts
  std::map<int, Status> gone_ MEMSPAN_GUARDED_BY(mutex_);          // why
  struct Operation {
    Parts parts;
    std::size_t failed_with = 0;  // parts when its failure was written
  };
  std::map<std::uint64_t, Operation> operations_ MEMSPAN_GUARDED_BY(mutex_);  // incomplete ones
  std::uint64_t next_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // those before it are complete
  std::deque<GroupOutcome> due_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_writing_ MEMSPAN_GUARDED_BY(mutex_) = false;
};

}  // namespace memspan::inline store
