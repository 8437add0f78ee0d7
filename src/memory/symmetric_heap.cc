// SPDX-License-Identifier: Apache-2.0
#include "memory/symmetric_heap.h"

#include <algorithm>

namespace memspan {

SymmetricHeap::SymmetricHeap(const Pages& pages, std::size_t offset, std::byte* base,
                             std::size_t bytes, CommitMode mode, const CommitSettings& settings)
    : pages_(pages),
      offset_(offset),
      base_(base),
      allocator_(bytes),
      mode_(mode),
      settings_(settings) {}

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

Status SymmetricHeap::commit(const void* pointer, std::size_t bytes) {
  std::size_t end = (offset_of(pointer) + bytes + kChunk - 1) / kChunk;
  if (end > committed_.size()) committed_.resize(end);
  for (std::size_t chunk = offset_of(pointer) / kChunk; chunk < end;) {
    std::size_t stop = chunk;
    while (stop < end && !committed_[stop]) ++stop;
    if (stop > chunk) {
      std::size_t from = chunk * kChunk;
      std::size_t to = std::min(stop * kChunk, align_up(allocator_.bytes(), page_size()));
      MEMSPAN_TRY(commit_mapped({pages_, offset_ + from, base_ + from, to - from}, settings_),
                  "committing symmetric memory");
      std::fill(committed_.begin() + static_cast<std::ptrdiff_t>(chunk),
                committed_.begin() + static_cast<std::ptrdiff_t>(stop), true);
    }
    chunk = std::max(stop, chunk + 1);
  }
  return Status::ok();
}

}  // namespace memspan
