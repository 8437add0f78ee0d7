// SPDX-License-Identifier: Apache-2.0
#include "device/mapped_commit.h"

#include "core/cpu.h"
#include "core/mutex.h"
#include "core/thread.h"

namespace memspan {
namespace {

// The taking of one part. Threads take one piece after the other.
class Commit {
 public:
  Commit(const MappedPart& part, const MayTake& before) : part_(part), before_(before) {
    way_ = huge_page_way_of(part);
    if (way_ != HugePageWay::kNone) huge_ = huge_range(part.place, part.bytes);
  }

  // If pages are only taken, not cleared, one thread is as fast as several.
  std::size_t threads() const {
    if (part_.bytes < kThreadedCommitBytes || way_ == HugePageWay::kNone) return 1;
    return std::min({static_cast<std::size_t>(usable_cores()), kMostCommitThreads, pieces()});
  }

  void work() MEMSPAN_EXCLUDES(mutex_) {
    while (!has_failed_.load(std::memory_order_relaxed)) {
      const std::size_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces()) return;
      if (Status status = take(piece); !status.is_ok()) {
        MutexLock lock(mutex_);
        if (status_.is_ok()) status_ = std::move(status);
        has_failed_.store(true, std::memory_order_relaxed);
      }
    }
  }

  Status status() MEMSPAN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  // Pieces end at multiples of kCommitPiece behind the first huge page, so that no huge page is
  // cut.
  std::size_t end_of(std::size_t piece) const {
    return std::min(huge_.at + (piece + 1) * kCommitPiece, part_.bytes);
  }
  std::size_t begin_of(std::size_t piece) const {
    return piece == 0 ? 0 : huge_.at + piece * kCommitPiece;
  }
  std::size_t pieces() const {
    const std::size_t rest = part_.bytes - std::min(huge_.at, part_.bytes);
    return std::max<std::size_t>(1, (rest + kCommitPiece - 1) / kCommitPiece);
  }

  Status take(std::size_t piece) {
    const std::size_t begin = begin_of(piece), end = end_of(piece);
    if (before_) MEMSPAN_PASS(before_(end - begin));
    const std::size_t huge_begin = std::max(begin, huge_.at);
    const std::size_t huge_end = std::min(end, huge_.at + huge_.bytes);
    if (huge_begin < huge_end) make_huge(part_.place + huge_begin, huge_end - huge_begin, way_);
    return part_.pages.commit(part_.offset + begin, end - begin);
  }

  const MappedPart& part_;
  const MayTake& before_;
  HugeRange huge_{};
  HugePageWay way_ = HugePageWay::kNone;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> has_failed_{false};
  Mutex mutex_;
  Status status_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace

HugePageWay huge_page_way_of(const MappedPart& part) {
  // A huge page can be mapped only if the address and the offset agree.
  const auto address = reinterpret_cast<std::uintptr_t>(part.place);
  if (part.place == nullptr || (address - part.offset) % kHugePage != 0 ||
      huge_range(part.place, part.bytes).bytes == 0 || part.pages.is_huge())
    return HugePageWay::kNone;
  return huge_page_way();
}

Status commit_mapped(const MappedPart& part, const MayTake& before) {
  if (part.bytes == 0) return Status::ok();
  Commit commit(part, before);
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < commit.threads(); ++i) {
    const SignalsBlocked blocked;
    auto thread = start_thread("a commit", [&] { commit.work(); });
    if (!thread.is_ok()) break;  // fewer threads take it
    threads.push_back(std::move(thread).value());
  }
  commit.work();
  for (std::thread& thread : threads) thread.join();
  return commit.status();
}

}  // namespace memspan
