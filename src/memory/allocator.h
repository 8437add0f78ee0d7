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

namespace memspan {

// One thread at a time.
class Allocator {
 public:
  // Sizes are rounded up to this, so that every block can hold any scalar type.
  static constexpr std::uint64_t kGranularity = 16;

  explicit Allocator(std::uint64_t bytes);

  // The offset of a free piece, or nullopt when no piece is large enough. `alignment` is a power
  // of two; `bytes` > 0.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes,
                                        std::uint64_t alignment = kGranularity);
  // False (and nothing happens) when `offset` is not what allocate() gave or was freed already.
  bool free(std::uint64_t offset);
  // Grows or shrinks in place; false when what follows is not free or too small.
  bool resize(std::uint64_t offset, std::uint64_t bytes);

  // The rounded size of the block at `offset`; nullopt when nothing is allocated there.
  std::optional<std::uint64_t> size_of(std::uint64_t offset) const;
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

  void prepare();
  void add(std::uint64_t offset, Block block);
  void make_free(std::uint64_t offset, std::uint64_t bytes);
  void forget_free(Blocks::iterator block);

  std::uint64_t bytes_;
  std::uint64_t in_use_ = 0;
  Blocks blocks_;  // covers [0, bytes_) without gaps; no two neighbours are free
  Sizes by_size_;  // the free ones
  // For what the next change adds: without memory, it fails before it begins.
  Blocks spare_blocks_;
  Sizes spare_sizes_;
};

}  // namespace memspan
