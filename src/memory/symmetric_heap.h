// SPDX-License-Identifier: Apache-2.0
// One rank's own symmetric heap: an allocator over its part of the shared segment, and the record
// of which pages are committed already.
//
// It decides nothing for all ranks: the collective calls of the APIs make every rank do the same
// step and compare the outcomes (pgas/symmetric_memory). So each step can be undone.
#pragma once

#include "core/pages.h"
#include "core/status.h"
#include "memory/allocator.h"
#include "memory/budget.h"
#include "memory/promised_memory.h"

namespace memspan::inline memory {

// When the memory behind an allocation is taken from the system.
enum class CommitMode {
  kPromised,      // large blocks at the first use, but checked and kept for it
  kAtAllocation,  // with the allocation, which fails if memory is short
  kAtTouch,       // page by page at the first use; the kernel then reports a shortage
};

// One thread at a time. `pages` must outlive it.
class SymmetricHeap {
 public:
  // The heap is [offset, offset + bytes) of `pages`, mapped at `base`.
  SymmetricHeap(const Pages& pages, std::size_t offset, std::byte* base, std::size_t bytes,
                CommitMode mode = CommitMode::kAtAllocation)
      : pages_(pages), offset_(offset), base_(base), allocator_(bytes), mode_(mode) {
    if (mode == CommitMode::kPromised) promised_ = std::make_unique<PromisedMemory>(pages);
  }

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return allocator_.bytes(); }
  const Allocator& allocator() const { return allocator_; }

  // Only book-keeping; null when no piece is large enough.
  std::byte* allocate(std::size_t bytes, std::size_t alignment) {
    auto offset = allocator_.allocate(bytes, alignment);
    return offset ? base_ + *offset : nullptr;
  }
  // False if `pointer` is not from allocate().
  bool free(void* pointer) { return contains(pointer) && allocator_.free(offset_of(pointer)); }
  bool resize(void* pointer, std::size_t bytes) {
    return contains(pointer) && allocator_.resize(offset_of(pointer), bytes);
  }
  // The block's size; nullopt if `pointer` is not the start of one.
  std::optional<std::size_t> size_of(const void* pointer) const {
    if (!contains(pointer)) return std::nullopt;
    return allocator_.size_of(offset_of(pointer));
  }
  bool contains(const void* pointer) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_) < bytes();
  }

  // How many bytes commit() of this range would take from the system; 0 if they are taken at the
  // first use.
  std::size_t uncommitted(const void* pointer, std::size_t bytes) const {
    if (mode_ == CommitMode::kAtTouch) return 0;
    std::size_t first = offset_of(pointer) / kChunk;
    std::size_t end = (offset_of(pointer) + bytes + kChunk - 1) / kChunk;
    std::size_t missing = 0;
    for (std::size_t chunk = first; chunk < end; ++chunk)
      missing += chunk >= committed_.size() || !committed_[chunk] ? kChunk : 0;
    return missing;
  }
  // Takes only huge pages that the range covers whole, so it costs no more than its chunks.
  Status commit(const void* pointer, std::size_t bytes) {
    return for_uncommitted(pointer, bytes, [this](const Range& range) {
      const MappedPart part{pages_, offset_ + range.begin, base_ + range.begin,
                            range.end - range.begin};
      // Taking that much lasts long enough for others to take what was available.
      return part.bytes < kThreadedCommitBytes ? commit_mapped(part)
                                               : commit_within_budget(part, "the block");
    });
  }

  // Whether so many uncommitted bytes are enough to be promised, which promise() does in place of
  // commit().
  bool may_promise(std::size_t bytes) const { return promised_ && bytes >= kThreadedCommitBytes; }
  Status promise(const void* pointer, std::size_t bytes) {
    return for_uncommitted(pointer, bytes, [this](const Range& range) {
      promises_.push_back(range);
      return promised_->add(offset_ + range.begin, base_ + range.begin, range.end - range.begin);
    });
  }
  // Takes what was promised of a heap with the same blocks at that offset of the pages.
  Status take_promised(std::size_t heap_offset) const {
    for (const Range& range : promises_)
      MEMSPAN_PASS(pages_.commit(heap_offset + range.begin, range.end - range.begin));
    return Status::ok();
  }
  std::uint64_t promised() const { return promised_ ? promised_->promised() : 0; }
  // This heap's promises have been taken.
  void forget_promised() {
    promises_.clear();
    if (promised_) promised_->forget();
  }

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  // Calls `take` for each range that is not committed yet, which then counts as committed.
  Status for_uncommitted(const void* pointer, std::size_t bytes,
                         const std::function<Status(const Range&)>& take) {
    std::size_t end = (offset_of(pointer) + bytes + kChunk - 1) / kChunk;
    if (end > committed_.size()) committed_.resize(end);
    for (std::size_t chunk = offset_of(pointer) / kChunk; chunk < end;) {
      std::size_t stop = chunk;
      while (stop < end && !committed_[stop]) ++stop;
      if (stop > chunk) {
        MEMSPAN_TRY(take({chunk * kChunk,
                          std::min(stop * kChunk, align_up(allocator_.bytes(), page_size()))}),
                    "committing symmetric memory");
        std::fill(committed_.begin() + static_cast<std::ptrdiff_t>(chunk),
                  committed_.begin() + static_cast<std::ptrdiff_t>(stop), true);
      }
      chunk = std::max(stop, chunk + 1);
    }
    return Status::ok();
  }
  // Memory is committed in chunks of this size, one bit each.
  static constexpr std::size_t kChunk = std::size_t{64} << 10;
  std::size_t offset_of(const void* pointer) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_);
  }

  const Pages& pages_;
  std::size_t offset_;
  std::byte* base_;
  Allocator allocator_;
  CommitMode mode_;
  std::vector<bool> committed_;               // grows with the highest chunk in use
  std::vector<Range> promises_;               // since the last forget_promised()
  std::unique_ptr<PromisedMemory> promised_;  // null if nothing is promised
};

}  // namespace memspan::inline memory
