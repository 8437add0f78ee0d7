// SPDX-License-Identifier: Apache-2.0
// Copies that streams do while their callers continue; each calling thread waits for its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "device/stream.h"

namespace memspan {

// Thread-safe. The destructor waits until all copies are done.
class AsyncCopies : NotCopyable {
 public:
  AsyncCopies();

  // Not ordered with earlier copies. `ranks`: whose memory it copies, for messages.
  Status begin(std::set<std::uint32_t> ranks, std::function<Status()> copy);
  // Waits until all copies of this thread are done. Returns their first failure and forgets it.
  // kTimeout names the ranks and leaves the copies running. Ok if the thread has none.
  Status wait(Deadline deadline);

 private:
  // The copies that one thread began.
  struct Pending {
    Mutex mutex;
    ConditionVariable changed;
    std::list<std::set<std::uint32_t>> left MEMSPAN_GUARDED_BY(mutex);  // their ranks
    Status failure MEMSPAN_GUARDED_BY(mutex);

    void finish(std::list<std::set<std::uint32_t>>::iterator copy, const Status& status)
        MEMSPAN_EXCLUDES(mutex);
  };
  std::shared_ptr<Pending> pending_of_this_thread(bool is_to_be_made);

  // As many as help: several copies at a time, and a core left for the threads that began them.
  static constexpr std::size_t kMostStreams = 4;
  const std::uint64_t number_;  // no other object has had it
  const std::size_t streams_used_;
  std::atomic<std::uint64_t> next_{0};
  std::array<Stream, kMostStreams> streams_;
};

}  // namespace memspan
