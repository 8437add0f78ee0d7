// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator.h"

#include "core/pages.h"

namespace memspan {
Allocator::Allocator(std::uint64_t bytes) : bytes_(bytes & ~(kGranularity - 1)) {
  prepare();
  if (bytes_ > 0) make_free(0, bytes_);
}

void Allocator::prepare() {
  // For what is in front of a block, the block, what is behind, and to free the block again.
  constexpr std::size_t kMostAdded = 4;
  for (std::uint64_t i = 0; spare_blocks_.size() < kMostAdded; ++i) spare_blocks_.try_emplace(i);
  for (std::uint64_t i = 0; spare_sizes_.size() < kMostAdded; ++i) spare_sizes_.emplace(i, 0);
}

void Allocator::add(std::uint64_t offset, Block block) {
  Blocks::node_type node = spare_blocks_.extract(spare_blocks_.begin());
  node.key() = offset;
  node.mapped() = block;
  blocks_.insert(std::move(node));
}

void Allocator::make_free(std::uint64_t offset, std::uint64_t bytes) {
  add(offset, Block{bytes, true});
  Sizes::node_type node = spare_sizes_.extract(spare_sizes_.begin());
  node.value() = {bytes, offset};
  by_size_.insert(std::move(node));
}

void Allocator::forget_free(Blocks::iterator block) {
  by_size_.erase({block->second.bytes, block->first});
  blocks_.erase(block);
}

std::optional<std::uint64_t> Allocator::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes == 0 || bytes > bytes_ || alignment > bytes_) return std::nullopt;
  prepare();
  bytes = align_up(bytes, kGranularity);
  if (alignment < kGranularity) alignment = kGranularity;
  // The first block of the best size may not fit once aligned; one of bytes + alignment always
  // does.
  for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end();) {
    auto [free_bytes, offset] = *it;
    std::uint64_t start = align_up(offset, alignment);
    if (start - offset > free_bytes || free_bytes - (start - offset) < bytes) {
      it = free_bytes < bytes + alignment ? by_size_.lower_bound({bytes + alignment, 0})
                                          : std::next(it);
      continue;
    }
    forget_free(blocks_.find(offset));
    if (start > offset) make_free(offset, start - offset);
    add(start, Block{bytes, false});
    if (std::uint64_t end = offset + free_bytes; start + bytes < end)
      make_free(start + bytes, end - start - bytes);
    in_use_ += bytes;
    return start;
  }
  return std::nullopt;
}

bool Allocator::free(std::uint64_t offset) {
  auto block = blocks_.find(offset);
  if (block == blocks_.end() || block->second.is_free) return false;
  if (spare_blocks_.empty() || spare_sizes_.empty()) prepare();
  std::uint64_t bytes = block->second.bytes;
  in_use_ -= bytes;
  if (auto next = std::next(block); next != blocks_.end() && next->second.is_free) {
    bytes += next->second.bytes;
    forget_free(next);
  }
  if (block != blocks_.begin()) {
    if (auto previous = std::prev(block); previous->second.is_free) {
      offset = previous->first;
      bytes += previous->second.bytes;
      forget_free(previous);
    }
  }
  blocks_.erase(block);
  make_free(offset, bytes);
  return true;
}

bool Allocator::resize(std::uint64_t offset, std::uint64_t bytes) {
  auto block = blocks_.find(offset);
  if (block == blocks_.end() || block->second.is_free || bytes == 0 || bytes > bytes_) return false;
  bytes = align_up(bytes, kGranularity);
  std::uint64_t have = block->second.bytes;
  auto next = std::next(block);
  bool next_is_free = next != blocks_.end() && next->second.is_free;
  std::uint64_t reach = have + (next_is_free ? next->second.bytes : 0);
  if (bytes > reach) return false;
  prepare();
  if (next_is_free) forget_free(next);
  block->second.bytes = bytes;
  if (reach > bytes) make_free(offset + bytes, reach - bytes);
  in_use_ += bytes - have;
  return true;
}

std::optional<std::uint64_t> Allocator::size_of(std::uint64_t offset) const {
  auto block = blocks_.find(offset);
  if (block == blocks_.end() || block->second.is_free) return std::nullopt;
  return block->second.bytes;
}

}  // namespace memspan
