// SPDX-License-Identifier: Apache-2.0
// Copies that streams do while their callers continue; each calling thread waits for its own.
#pragma once

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
#include "core/mutex.h"
#include "core/status.h"
#include "device/stream.h"

namespace memspan {

// Thread-safe. The destructor waits until all copies are done.
class AsyncCopies : NotCopyable {
 public:
  // Not ordered with earlier copies. `ranks`: whose memory it copies, for messages.
  Status begin(std::set<std::uint32_t> ranks, std::function<Status()> copy)
      MEMSPAN_EXCLUDES(mutex_);
  // Waits until all copies of this thread are done. Returns their first failure and forgets it.
  // kTimeout names the ranks and leaves the copies running. Ok if the thread has none.
  Status wait(Deadline deadline) MEMSPAN_EXCLUDES(mutex_);

 private:
  using Ranks = std::list<std::set<std::uint32_t>>;
  // The copies that one thread began.
  struct Pending {
    Ranks left = {};  // those of the copies that are under way
    Status failure = {};
  };
  void finish(std::uint64_t thread, Ranks::iterator copy, const Status& status)
      MEMSPAN_EXCLUDES(mutex_);

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

}  // namespace memspan
