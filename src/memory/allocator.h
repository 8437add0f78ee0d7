// SPDX-License-Identifier: Apache-2.0
// Hands out pieces of a range of numbers; it never touches the memory behind them.
//
// Two views of the same blocks: by offset (to merge neighbours) and the free ones by (size,
// offset) (to find the best fit). Every operation is O(log n) in the number of blocks. It is
// deterministic: the same calls give the same offsets in every process, which is what makes a
// symmetric heap symmetric.
//
//   offset 0        48      80                    bytes()
//          | used 48 | free  | used ...  | free ... |
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/pages.h"

namespace memspan::inline memory {

// One thread at a time.
class Allocator {
 public:
  // Sizes are rounded up to this, so that every block can hold any scalar type.
  static constexpr std::uint64_t kGranularity = 16;

  explicit Allocator(std::uint64_t bytes) : bytes_(bytes & ~(kGranularity - 1)) {
    prepare();
    if (bytes_ > 0) make_free(0, bytes_);
  }

  // The offset of a free piece, or nullopt when no piece is large enough. `alignment` is a power
  // of two; `bytes` > 0.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes,
                                        std::uint64_t alignment = kGranularity) {
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
  // False (and nothing happens) when `offset` is not what allocate() gave or was freed already.
  bool free(std::uint64_t offset) {
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
  // Grows or shrinks in place; false when what follows is not free or too small.
  bool resize(std::uint64_t offset, std::uint64_t bytes) {
    auto block = blocks_.find(offset);
    if (block == blocks_.end() || block->second.is_free || bytes == 0 || bytes > bytes_)
      return false;
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

  // The rounded size of the block at `offset`; nullopt when nothing is allocated there.
  std::optional<std::uint64_t> size_of(std::uint64_t offset) const {
    auto block = blocks_.find(offset);
    if (block == blocks_.end() || block->second.is_free) return std::nullopt;
    return block->second.bytes;
  }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t bytes_in_use() const { return in_use_; }
  std::uint64_t largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  struct Block {
    std::uint64_t bytes;
    bool is_free;
  };
  using Blocks = std::map<std::uint64_t, Block>;
  using Sizes = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // (bytes, offset)

  void prepare() {
    // For what is in front of a block, the block, what is behind, and to free the block again.
    constexpr std::size_t kMostAdded = 4;
    for (std::uint64_t i = 0; spare_blocks_.size() < kMostAdded; ++i) spare_blocks_.try_emplace(i);
    for (std::uint64_t i = 0; spare_sizes_.size() < kMostAdded; ++i) spare_sizes_.emplace(i, 0);
  }
  void add(std::uint64_t offset, Block block) {
    Blocks::node_type node = spare_blocks_.extract(spare_blocks_.begin());
    node.key() = offset;
    node.mapped() = block;
    blocks_.insert(std::move(node));
  }
  void make_free(std::uint64_t offset, std::uint64_t bytes) {
    add(offset, Block{bytes, true});
    Sizes::node_type node = spare_sizes_.extract(spare_sizes_.begin());
    node.value() = {bytes, offset};
    by_size_.insert(std::move(node));
  }
  void forget_free(Blocks::iterator block) {
    by_size_.erase({block->second.bytes, block->first});
    blocks_.erase(block);
  }

  std::uint64_t bytes_;
  std::uint64_t in_use_ = 0;
  Blocks blocks_;  // covers [0, bytes_) without gaps; no two neighbours are free
  Sizes by_size_;  // the free ones
  // For what the next change adds: without memory, it fails before it begins.
  Blocks spare_blocks_;
  Sizes spare_sizes_;
};

}  // namespace memspan::inline memory
