// SPDX-License-Identifier: Apache-2.0
#include "device/mapped_commit.h"

#include <sys/mman.h>

#include "core/cpu.h"
#include "core/environment.h"
#include "core/mutex.h"
#include "core/thread.h"

// Linux 5.14 and 6.1; older kernels return EINVAL.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace memspan::inline device {
namespace {

// "always inherit [never]" -> "never".
std::string_view chosen_word(std::string_view text) {
  const std::size_t begin = text.find('['), end = text.find(']');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return text.substr(begin + 1, end - begin - 1);
}

// The taking of one part. Threads take one piece after the other.
class Commit {
 public:
  Commit(const MappedPart& part, const MayTake& before, const Taken& after)
      : part_(part), before_(before), after_(after) {
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
    MEMSPAN_PASS(part_.pages.commit(part_.offset + begin, end - begin));
    if (after_) after_(end - begin);
    return Status::ok();
  }

  const MappedPart& part_;
  const MayTake& before_;
  const Taken& after_;
  HugeRange huge_{};
  HugePageWay way_ = HugePageWay::kNone;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> has_failed_{false};
  Mutex mutex_;
  Status status_ MEMSPAN_GUARDED_BY(mutex_);
};

}  // namespace

HugePageWay huge_page_way(std::string_view enabled, std::string_view shmem_enabled) {
  const std::string_view shared = chosen_word(shmem_enabled);
  for (const std::string_view word : {"advise", "within_size", "always", "force"})
    if (shared == word) return HugePageWay::kAdvice;
  const std::string_view all = chosen_word(enabled);
  if (shared == "never" && !all.empty() && all != "never") return HugePageWay::kCollapse;
  return HugePageWay::kNone;
}

HugePageWay huge_page_way() {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  return huge_page_way(first_line_of(folder + "enabled"), first_line_of(folder + "shmem_enabled"));
}

HugeRange huge_range(const std::byte* place, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  const std::size_t before = align_up(address, kHugePage) - address;
  if (before >= bytes) return {};
  return {before, (bytes - before) / kHugePage * kHugePage};
}

void make_huge(std::byte* place, std::size_t bytes, HugePageWay way) {
  if (way == HugePageWay::kNone || bytes < kHugePage) return;
  if (way == HugePageWay::kAdvice && madvise(place, bytes, MADV_HUGEPAGE) != 0) return;
  // Touches one page of each, in a way that cannot end the process. With advice, that makes the
  // huge page. To collapse, the kernel needs an existing page.
  for (std::size_t at = 0; at < bytes; at += kHugePage)
    if (madvise(place + at, page_size(), MADV_POPULATE_WRITE) != 0) return;
  // The kernel tries one after the other and returns the last failure.
  if (way == HugePageWay::kCollapse) static_cast<void>(madvise(place, bytes, MADV_COLLAPSE));
}

void advise_huge(std::byte* place, std::size_t bytes) {
  const HugeRange range = huge_range(place, bytes);
  if (range.bytes != 0) static_cast<void>(madvise(place + range.at, range.bytes, MADV_HUGEPAGE));
}

HugePageWay huge_page_way_of(const MappedPart& part) {
  // A huge page can be mapped only if the address and the offset agree.
  const auto address = reinterpret_cast<std::uintptr_t>(part.place);
  if (part.place == nullptr || (address - part.offset) % kHugePage != 0 ||
      huge_range(part.place, part.bytes).bytes == 0 || part.pages.is_huge())
    return HugePageWay::kNone;
  return huge_page_way();
}

Status commit_mapped(const MappedPart& part, const MayTake& before, const Taken& after) {
  if (part.bytes == 0) return Status::ok();
  Commit commit(part, before, after);
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

}  // namespace memspan::inline device
