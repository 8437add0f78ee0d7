// SPDX-License-Identifier: Apache-2.0
// Copies that streams do while their callers continue; each calling thread waits for its own.
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <thread>

#include "core/clock.h"
#include "core/interrupt.h"
#include "core/lifetime.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "device/stream.h"

namespace memspan::inline fabric {

// Thread-safe. The destructor waits until all copies are done.
class AsyncCopies : NotCopyable {
 public:
  // Not ordered with earlier copies. `ranks`: whose memory it copies, for messages.
  Status begin(std::set<std::uint32_t> ranks, std::function<Status()> copy)
      MEMSPAN_EXCLUDES(mutex_) {
    const std::uint64_t thread = own_number();
    Ranks::iterator place;
    {
      MutexLock lock(mutex_);
      Ranks& left = pending_[thread].left;
      place = left.insert(left.end(), std::move(ranks));
    }
    Stream& stream = streams_[next_.fetch_add(1, std::memory_order_relaxed) % streams_used_];
    Status status;
    try {
      status = stream.submit([this, thread, place, work = std::move(copy)] {
        finish(thread, place, caught(work));
        return Status::ok();
      });
    } catch (const std::bad_alloc&) {
      finish(thread, place, Status::ok());
      throw;
    }
    if (!status.is_ok()) finish(thread, place, Status::ok());
    return status;
  }
  // Waits until all copies of this thread are done. Returns their first failure and forgets it.
  // kTimeout names the ranks and leaves the copies running. Ok if the thread has none.
  Status wait(Deadline deadline) MEMSPAN_EXCLUDES(mutex_) {
    const std::uint64_t thread = own_number();
    MutexLock lock(mutex_);
    const auto left = [&]() MEMSPAN_REQUIRES(mutex_) -> const Ranks* {
      const auto found = pending_.find(thread);
      return found == pending_.end() || found->second.left.empty() ? nullptr : &found->second.left;
    };
    while (left() != nullptr)
      if (!wait_interruptibly(changed_, mutex_, deadline) && left() != nullptr)
        return end_of_wait(
            fmt::format("copies of this thread are still under way, the oldest with rank {}",
                        fmt::join(left()->front(), ", ")));
    const auto done = pending_.extract(thread);
    return done.empty() ? Status::ok() : std::move(done.mapped().failure);
  }

 private:
  using Ranks = std::list<std::set<std::uint32_t>>;
  // The copies that one thread began.
  struct Pending {
    Ranks left = {};  // those of the copies that are under way
    Status failure = {};
  };
  // No other thread has had it.
  struct ThreadNumber {
    static inline std::atomic<std::uint64_t> last{0};
    const std::uint64_t value = last.fetch_add(1, std::memory_order_relaxed);
  };
  static std::uint64_t own_number() { return thread_object<ThreadNumber>().value; }
  void finish(std::uint64_t thread, Ranks::iterator copy, const Status& status)
      MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = pending_.find(thread);
    Pending& pending = found->second;
    if (pending.failure.is_ok()) pending.failure = status;
    pending.left.erase(copy);
    if (!pending.left.empty()) return;
    if (pending.failure.is_ok()) pending_.erase(found);
    changed_.notify_all();
  }

  // As many as help: several copies at a time, and a core left for the threads that began them.
  static constexpr std::size_t kMostStreams = 4;
  const std::size_t streams_used_ =
      std::clamp<std::size_t>(std::thread::hardware_concurrency() / 2, 1, kMostStreams);
  std::atomic<std::uint64_t> next_{0};
  Mutex mutex_;
  ConditionVariable changed_;
  // By the threads' numbers; without those that have neither copies under way nor a failure.
  std::map<std::uint64_t, Pending> pending_ MEMSPAN_GUARDED_BY(mutex_);
  std::array<Stream, kMostStreams> streams_;  // they end first: their work uses the others
};

}  // namespace memspan::inline fabric
