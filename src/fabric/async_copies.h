// SPDX-License-Identifier: Apache-2.0
// Copies that streams do while their callers continue; each calling thread waits for its own.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <map>
#include <set>
#include <thread>

#include "core/interrupt.h"
#include "core/thread.h"
#include "device/stream.h"

namespace memspan {

// Thread-safe. The destructor waits until all copies are done.
class AsyncCopies {
 public:
  AsyncCopies()
      : streams_used_(
            std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, kMostStreams)) {}

  // Not ordered with earlier copies. `ranks`: whose memory it copies, for messages.
  Status begin(std::set<std::uint32_t> ranks, std::function<Status()> copy)
      MEMSPAN_EXCLUDES(mutex_) {
    ByThread::iterator of;
    Ranks::iterator place;
    {
      MutexLock lock(mutex_);
      of = pending_.try_emplace(number_of_this_thread()).first;
      Ranks& left = of->second.left;
      place = left.insert(left.end(), std::move(ranks));
    }
    Stream& stream = streams_[next_.fetch_add(1, std::memory_order_relaxed) % streams_used_];
    Status status = caught([&] {
      return stream.submit([this, of, place, work = std::move(copy)] {
        finish(of, place, caught(work));
        return Status::ok();
      });
    });
    if (!status.is_ok()) finish(of, place, Status::ok());
    return status;
  }
  // Waits until all copies of this thread are done. Returns their first failure and forgets it.
  // kTimeout names the ranks and leaves the copies running. Ok if the thread has none.
  Status wait(Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (true) {
      const auto mine = pending_.find(number_of_this_thread());
      if (mine == pending_.end()) return Status::ok();
      const Ranks& left = mine->second.left;
      if (left.empty()) return std::move(pending_.extract(mine).mapped().failure);
      if (!wait_interruptibly(changed_, mutex_, deadline) &&
          pending_.contains(number_of_this_thread()) && !left.empty())
        return end_of_wait(
            fmt::format("copies of this thread are still under way, the oldest with rank {}",
                        fmt::join(left.front(), ", ")));
    }
  }

 private:
  using Ranks = std::list<std::set<std::uint32_t>>;
  // The copies that one thread began. Gone when none is under way and none has failed.
  struct Pending {
    Ranks left = {};
    Status failure = {};
  };
  using ByThread = std::map<std::uint64_t, Pending>;
  // No other thread of this process has had it.
  static std::uint64_t number_of_this_thread() {
    static constinit std::atomic<std::uint64_t> last{0};
    static thread_local const std::uint64_t number = last.fetch_add(1, std::memory_order_relaxed);
    return number;
  }
  void finish(ByThread::iterator of, Ranks::iterator copy, const Status& status)
      MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto& [left, failure] = of->second;
    if (failure.is_ok()) failure = status;
    left.erase(copy);
    if (!left.empty()) return;
    if (failure.is_ok()) pending_.erase(of);
    changed_.notify_all();
  }

  // As many as help: several copies at a time, and a core left for the threads that began them.
  static constexpr std::size_t kMostStreams = 4;
  const std::size_t streams_used_;
  std::atomic<std::uint64_t> next_{0};
  Mutex mutex_;
  ConditionVariable changed_;
  ByThread pending_ MEMSPAN_GUARDED_BY(mutex_);  // by the number of the thread
  std::array<Stream, kMostStreams> streams_;     // end first: their work uses the others
};

}  // namespace memspan
