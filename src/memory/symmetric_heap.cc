// SPDX-License-Identifier: Apache-2.0
#include "memory/symmetric_heap.h"

#include "memory/budget.h"

namespace memspan {

SymmetricHeap::SymmetricHeap(const Pages& pages, std::size_t offset, std::byte* base,
                             std::size_t bytes, CommitMode mode,
                             std::optional<PromisedMemory::Counts> counts)
    : pages_(pages), offset_(offset), base_(base), allocator_(bytes), mode_(mode) {
  if (mode == CommitMode::kPromised && counts)
    promised_ = std::make_unique<PromisedMemory>(pages, *std::move(counts));
}

std::byte* SymmetricHeap::allocate(std::size_t bytes, std::size_t alignment) {
  auto offset = allocator_.allocate(bytes, alignment);
  return offset ? base_ + *offset : nullptr;
}

bool SymmetricHeap::free(void* pointer) {
  return contains(pointer) && allocator_.free(offset_of(pointer));
}

bool SymmetricHeap::resize(void* pointer, std::size_t bytes) {
  return contains(pointer) && allocator_.resize(offset_of(pointer), bytes);
}

std::optional<std::size_t> SymmetricHeap::size_of(const void* pointer) const {
  if (!contains(pointer)) return std::nullopt;
  return allocator_.size_of(offset_of(pointer));
}

std::size_t SymmetricHeap::uncommitted(const void* pointer, std::size_t bytes) const {
  if (mode_ == CommitMode::kAtTouch) return 0;
  std::size_t first = offset_of(pointer) / kChunk;
  std::size_t end = (offset_of(pointer) + bytes + kChunk - 1) / kChunk;
  std::size_t missing = 0;
  for (std::size_t chunk = first; chunk < end; ++chunk)
    missing += chunk >= committed_.size() || !committed_[chunk] ? kChunk : 0;
  return missing;
}

Status SymmetricHeap::for_uncommitted(const void* pointer, std::size_t bytes,
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

Status SymmetricHeap::commit(const void* pointer, std::size_t bytes) {
  return for_uncommitted(pointer, bytes, [this](const Range& range) {
    const MappedPart part{pages_, offset_ + range.begin, base_ + range.begin,
                          range.end - range.begin};
    // Taking that much lasts long enough for others to take what was available.
    return part.bytes < kThreadedCommitBytes ? commit_mapped(part)
                                             : commit_within_budget(part, "the block");
  });
}

Status SymmetricHeap::promise(const void* pointer, std::size_t bytes) {
  return for_uncommitted(pointer, bytes, [this](const Range& range) {
    promises_.push_back(range);
    return promised_->add(offset_ + range.begin, base_ + range.begin, range.end - range.begin);
  });
}

Status SymmetricHeap::take_promised(std::size_t heap_offset) const {
  for (const Range& range : promises_)
    MEMSPAN_PASS(pages_.commit(heap_offset + range.begin, range.end - range.begin));
  return Status::ok();
}

void SymmetricHeap::forget_promised() {
  promises_.clear();
  if (promised_) promised_->forget();
}

}  // namespace memspan
