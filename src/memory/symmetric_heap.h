// SPDX-License-Identifier: Apache-2.0
// One rank's own symmetric heap: an allocator over its part of the shared segment, and the record
// of which pages are committed already.
//
// It decides nothing for all ranks: the collective calls of the APIs make every rank do the same
// step and compare the outcomes (pgas/symmetric_memory). So each step can be undone.
#pragma once

#include "core/pages.h"
#include "core/status.h"
#include "device/mapped_commit.h"
#include "memory/allocator.h"
#include "memory/promised_memory.h"

namespace memspan {

// When the memory behind an allocation is taken from the system.
enum class CommitMode {
  kPromised,      // large blocks at the first use, but checked and kept for it
  kAtAllocation,  // with the allocation, which fails if memory is short
  kAtTouch,       // page by page at the first use; the kernel then reports a shortage
};

// One thread at a time. `pages` must outlive it.
class SymmetricHeap {
 public:
  // The heap is [offset, offset + bytes) of `pages`, mapped at `base`. Promises are counted only
  // with kPromised.
  SymmetricHeap(const Pages& pages, std::size_t offset, std::byte* base, std::size_t bytes,
                CommitMode mode = CommitMode::kAtAllocation,
                std::optional<PromisedMemory::Counts> counts = {});

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return allocator_.bytes(); }
  const Allocator& allocator() const { return allocator_; }

  // Only book-keeping; null when no piece is large enough.
  std::byte* allocate(std::size_t bytes, std::size_t alignment);
  // False if `pointer` is not from allocate().
  bool free(void* pointer);
  bool resize(void* pointer, std::size_t bytes);
  // The block's size; nullopt if `pointer` is not the start of one.
  std::optional<std::size_t> size_of(const void* pointer) const;
  bool contains(const void* pointer) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_) < bytes();
  }

  // How many bytes commit() of this range would take from the system; 0 if they are taken at the
  // first use.
  std::size_t uncommitted(const void* pointer, std::size_t bytes) const;
  // Takes only huge pages that the range covers whole, so it costs no more than its chunks.
  Status commit(const void* pointer, std::size_t bytes);

  // Whether so many uncommitted bytes are enough to be promised, which promise() does in place of
  // commit().
  bool may_promise(std::size_t bytes) const { return promised_ && bytes >= kThreadedCommitBytes; }
  Status promise(const void* pointer, std::size_t bytes);
  // Takes what was promised of a heap with the same blocks at that offset of the pages.
  Status take_promised(std::size_t heap_offset) const;
  // This heap's promises have been taken.
  void forget_promised();

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  // Calls `take` for each range that is not committed yet, which then counts as committed.
  Status for_uncommitted(const void* pointer, std::size_t bytes,
                         const std::function<Status(const Range&)>& take);
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

}  // namespace memspan
