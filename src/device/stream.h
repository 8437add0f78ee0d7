// SPDX-License-Identifier: Apache-2.0
// An ordered queue of work that a thread of its own does: the host device's stream.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"

namespace memspan {

// Thread-safe. Its end waits until all its work is done.
class Stream {
 public:
  using Work = std::function<Status()>;

  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Does it after what was submitted before. The first call starts the thread: kSystem when there
  // can be none.
  Status submit(Work work) MEMSPAN_EXCLUDES(mutex_);
  bool is_idle() const MEMSPAN_EXCLUDES(mutex_);
  // Until what was submitted before this call is done. kTimeout leaves all as it is; else the first
  // failure since the last synchronisation, which is then forgotten.
  Status synchronize(Deadline deadline) MEMSPAN_EXCLUDES(mutex_);

 private:
  void run() MEMSPAN_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Work> queue_ MEMSPAN_GUARDED_BY(mutex_);
  std::uint64_t submitted_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  Status first_failure_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::optional<std::thread> thread_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace memspan
