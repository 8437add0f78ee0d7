// SPDX-License-Identifier: Apache-2.0
// Memory of a symmetric heap that the program was promised, and that the kernel gives page by page
// at the first touch (docs/design/0030-promised-memory.md).
//
//   a part  |#### touched ####|== huge pages ==|.................|
//           |<------------ given ------------->|<-- promised --->|
//
// While something is promised, a thread makes huge pages ahead of a program that touches a part
// from its beginning, and takes the rest as soon as memory is not plentiful any more. So the
// program finds its memory even if other programs take theirs. The thread blocks all signals, and
// the program never waits for its work.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/pages.h"
#include "core/status.h"
#include "device/mapped_commit.h"
#include "memory/claim.h"

namespace memspan::inline memory {

// Whether so much is available that `promised` bytes can be taken in time, while other programs
// take memory as fast.
bool is_plentiful(std::uint64_t available, std::uint64_t promised);
// How long it stays so if others take memory at 32 GB/s: 5 ms at least, 1 s at most.
Duration plentiful_for(std::uint64_t available, std::uint64_t promised);

// The promises of one process. One thread at a time calls it.
class PromisedMemory : NotCopyable {
 public:
  // So many touched bytes in a row show that a program has passed what was made ahead. Fewer at the
  // end of a part's touched memory may still count as promised.
  static constexpr std::size_t kTouchedSign = std::size_t{64} << 10;

  // `pages` must outlive it.
  explicit PromisedMemory(const Pages& pages) : pages_(pages) {}
  // Ends the thread; what is promised then may be missing later.
  ~PromisedMemory();

  // Promises `bytes` of the pages from `offset` on, mapped at `place`. kSystem if no thread starts.
  Status add(std::size_t offset, std::byte* place, std::size_t bytes) MEMSPAN_EXCLUDES(mutex_);
  // The caller has taken all that was promised.
  void forget() MEMSPAN_EXCLUDES(mutex_);
  // The bytes promised and not touched, which all processes of the host see as claimed.
  std::uint64_t promised() const { return promised_.bytes(); }

 private:
  struct Part {
    std::size_t offset;
    std::byte* place;
    std::size_t bytes;
    HugeRange huge;         // where huge pages are made ahead
    std::size_t given = 0;  // the bytes at the beginning that exist
    bool is_new = true;
  };
  void run();
  bool wait(std::vector<Part>& parts, const Deadline& until) MEMSPAN_EXCLUDES(mutex_);
  void publish(const std::vector<Part>& parts) MEMSPAN_REQUIRES(mutex_);
  std::size_t existing(const Part& part, std::size_t from) const;
  bool follow(Part& part) const;
  Clock::time_point take_unless_plentiful(std::vector<Part>& parts) MEMSPAN_EXCLUDES(mutex_);

  const Pages& pages_;
  Claim promised_;  // so much is promised
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Part> added_ MEMSPAN_GUARDED_BY(mutex_);
  bool is_forgotten_ MEMSPAN_GUARDED_BY(mutex_) = false;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // from the first promise on
};

}  // namespace memspan::inline memory
