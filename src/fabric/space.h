// SPDX-License-Identifier: Apache-2.0
// A symmetric space: a fixed number of processes create it together. Each has a part of the same
// size, and all parts are at the same addresses in all processes.
//
//   base | part of rank 0 | part of rank 1 | ...    parts begin `bytes` apart, whatever that is
//
// Creating a space takes three barriers: all have exchanged options and identities; all have the
// addresses, and the memory can be mapped; all have committed their parts. A failure in one process
// fails all, for the same reason.
#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <span>
#include <system_error>
#include <thread>

#include "core/environment.h"
#include "fabric/member.h"
#include "store/recipes/all_gather.h"
#include "store/recipes/store_group.h"

namespace memspan::inline fabric {

inline constexpr std::uint64_t kMostSpaceBytes = std::uint64_t{64} << 30;
inline constexpr std::size_t kMostContextBytes = std::size_t{64} << 10;

// Global exit: a process announces a status. Every process that listens gets one call with the
// first status announced. All of them watch one key of the store.
// Thread-safe.
class ExitNotice {
 public:
  using Call = std::function<void(int status)>;

  // All members give the same key.
  ExitNotice(std::shared_ptr<Member> member, std::string key)
      : member_(std::move(member)), key_(std::move(key)) {}
  // A call that has begun continues.
  ~ExitNotice() {
    MutexLock lock(mutex_);
    if (watch_)
      member_->tell_end([&, watch = *watch_](const Deadline& deadline) {
        return member_->store().unwatch(watch, deadline);
      });
  }

  // Makes the call on a thread of its own, at once if a status was announced before. The call may
  // do anything, even destroy this object. kUnavailable: this process listens already.
  Status listen(Call call, Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (watch_) return {Code::kUnavailable, "this process listens for the exit already"};
    // Once, by the watch, which may outlive a failed call, or here.
    const auto hear = [call = std::move(call), was_called = std::make_shared<std::atomic<bool>>()](
                          const std::string& text) {
      const auto status = parse_integer("the exit's status", text, INT32_MIN, INT32_MAX);
      if (!status.is_ok() || was_called->exchange(true, std::memory_order_relaxed)) return;
      try {
        std::thread([call, code = static_cast<int>(*status)] { call(code); }).detach();
      } catch (const std::system_error&) {  // no thread can be had
        call(static_cast<int>(*status));
      }
    };
    const auto on_change = [hear](const StoreChange& change) {
      if (change.event == StoreEvent::kSet) hear(change.value);
    };
    MEMSPAN_TRY_ASSIGN(watch_, member_->store().watch(key_, on_change, deadline),
                       "listening for the exit");
    if (auto before = member_->store().get_now(key_, deadline); before.is_ok()) hear(*before);
    return Status::ok();
  }
  // Ok also if another process announced first.
  // The key is under the announcer's lease, so that nothing is left at the store.
  Status announce(int status, Deadline deadline) {
    auto announced = member_->store().compare_and_swap(key_, "", std::to_string(status), deadline,
                                                       KeyLife::kLease);
    return announced.is_ok() ? Status::ok() : announced.status().annotate("announcing the exit");
  }

 private:
  const std::shared_ptr<Member> member_;  // shared with what else this process has at the store
  const std::string key_;
  Mutex mutex_;
  std::optional<std::uint64_t> watch_ MEMSPAN_GUARDED_BY(mutex_);
};

// Small numbers that no two processes have at once. Each is a key of the store while a process has
// it, under that process's lease. Thread-safe.
class SharedNumbers {
 public:
  // `prefix` of the keys: the same in all processes that share the numbers.
  SharedNumbers(std::shared_ptr<Member> member, std::string prefix)
      : member_(std::move(member)), prefix_(std::move(prefix)) {}
  // Gives back what this process has.
  ~SharedNumbers() {
    MutexLock lock(mutex_);
    for (std::uint32_t number : mine_)
      member_->tell_end([&](const Deadline& deadline) {
        return member_->store().remove(key_of(number), deadline).status();
      });
  }

  // The lowest free number; kUnavailable if none below `limit` is free.
  Result<std::uint32_t> take(std::uint32_t limit, Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    KeyValueStore& store = member_->store();
    while (!deadline.has_passed()) {
      MEMSPAN_TRY_ASSIGN(auto keys, store.list(prefix_, deadline), "looking for a free number");
      std::set<std::string> taken;
      for (auto& [key, value] : keys) taken.insert(std::move(key));
      std::uint32_t number = 0;
      while (number < limit && taken.contains(key_of(number))) ++number;
      if (number == limit)
        return Status(Code::kUnavailable, fmt::format("all {} numbers are taken", limit));
      // A mark of this attempt only.
      const std::string mark = fmt::format("{}.{}", store.lease(), ++attempts_);
      MEMSPAN_TRY_ASSIGN(
          std::string now,
          store.compare_and_swap(key_of(number), "", mark, deadline, KeyLife::kLease),
          "taking a number");
      if (now != mark) continue;  // another process was faster, so one made progress
      MutexLock lock(mutex_);
      mine_.insert(number);
      return number;
    }
    return Status(Code::kTimeout, "timeout: others were faster at every number that was free");
  }
  // kNotFound when this process does not have it.
  Status give_back(std::uint32_t number, Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (mine_.erase(number) == 0)
        return {Code::kNotFound, fmt::format("this process does not have the number {}", number)};
    }
    auto removed = member_->store().remove(key_of(number), deadline);
    if (removed.is_ok()) return Status::ok();
    MutexLock lock(mutex_);
    mine_.insert(number);
    return removed.status().annotate("giving a number back");
  }

 private:
  std::string key_of(std::uint32_t number) const { return prefix_ + std::to_string(number); }

  const std::shared_ptr<Member> member_;  // shared with what else this process has at the store
  const std::string prefix_;
  Mutex mutex_;
  std::atomic<std::uint64_t> attempts_{0};
  std::set<std::uint32_t> mine_ MEMSPAN_GUARDED_BY(mutex_);
};

class SpaceMemory;

// A value.
struct SpaceOptions {
  std::string name;  // "shm/7": the same in all members
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;   // of each part, up to kMostSpaceBytes
  Device* device = nullptr;  // whose memory it is of; not null
};

// Thread-safe. Collectives of all ranks that threads of this process call at the same time happen
// one after the other.
class Space {
 public:
  // Waits for the others. Errors name the ranks: kTimeout: missing; kPeerLost: gone;
  // kInvalidArgument: with another size; kUnavailable: taken; kOutOfMemory: without memory.
  static Result<std::unique_ptr<Space>> create(std::shared_ptr<Member> member, SpaceOptions options,
                                               Deadline deadline);
  ~Space();

  std::byte* base() const;
  std::uint32_t rank() const { return options_.rank; }
  std::uint32_t ranks() const { return options_.ranks; }
  std::uint64_t bytes() const { return options_.bytes; }  // of each part
  // Whether this process can read and write the part of a rank.
  bool reaches(std::uint32_t rank) const { return is_near_[rank]; }

  // The bytes of all ranks, by rank. All ranks give the same length, and together at most 8 MiB. As
  // StoreGroup: kTimeout names the missing ranks, and a failed all-gather counts.
  Result<std::vector<std::string>> all_gather(std::string_view mine, Deadline deadline)
      MEMSPAN_EXCLUDES(mutex_);
  // An all-gather among `size` of the ranks, which agree on a key and number themselves.
  Result<std::vector<std::string>> all_gather_some(std::string_view key, std::uint32_t rank,
                                                   std::uint32_t size, std::string_view mine,
                                                   Deadline deadline) MEMSPAN_EXCLUDES(mutex_);
  // Ends the collectives in which this process waits and refuses later ones. The other members'
  // collectives fail.
  void close() MEMSPAN_EXCLUDES(mutex_);

  SharedNumbers& numbers() { return numbers_; }
  ExitNotice& exit() { return exit_; }
  // At most kMostContextBytes of user data for kernels that run with this space.
  void set_context(std::span<const std::byte> bytes) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    context_.reserve(kMostContextBytes);  // they stay in place
    context_.assign(bytes.begin(), bytes.end());
  }
  // Empty until it is set. The bytes stay in place as long as the space. Setting it again changes
  // them in place, unprotected against readers.
  std::span<std::byte> context() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return context_;
  }
  // Copies as many bytes as fit, and returns how many the context has.
  std::size_t read_context(std::span<std::byte> into) const MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::copy_n(context_.begin(), std::min(into.size(), context_.size()), into.begin());
    return context_.size();
  }

 private:
  friend class SpaceMemory;  // a part of it
  class Waiting;
  Space(std::shared_ptr<Member> member, SpaceOptions options, CreatedGroup created);
  Status read_parts(const std::vector<std::string>& parts);
  Status agree(const Status& mine, const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);
  void forget_oldest_name(const Deadline& deadline) MEMSPAN_EXCLUDES(mutex_);

  const std::shared_ptr<Member> member_;  // shared with what else this process has at the store
  const SpaceOptions options_;
  const CreatedGroup created_;  // without contributions
  std::vector<bool> is_near_;   // by rank: on this host
  std::unique_ptr<SpaceMemory> memory_;
  SharedNumbers numbers_;
  ExitNotice exit_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool is_closed_ MEMSPAN_GUARDED_BY(mutex_) = false;
  bool is_in_collective_ MEMSPAN_GUARDED_BY(mutex_) = false;     // a thread uses group_
  std::multiset<std::string> waits_ MEMSPAN_GUARDED_BY(mutex_);  // names at the store
  // Names of all-gathers among some of the ranks that the store remembers; the oldest first.
  std::deque<std::string> gathered_names_ MEMSPAN_GUARDED_BY(mutex_);
  std::string forgotten_name_ MEMSPAN_GUARDED_BY(mutex_);  // a thread removes it from the store
  std::vector<std::byte> context_ MEMSPAN_GUARDED_BY(mutex_);
  StoreGroup group_;  // for the thread that set is_in_collective_
};

}  // namespace memspan::inline fabric
